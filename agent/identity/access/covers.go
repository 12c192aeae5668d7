package access

import (
	"fmt"
	"slices"
	"strings"
)

// ExceedsError means that a principal would give away a right that it does not have.
type ExceedsError struct {
	Who string
	// Operation on Path is an example of such a right; a "*" in the path is any segment.
	Operation Operation
	Path      string
}

// Error implements error.
func (e *ExceedsError) Error() string {
	return fmt.Sprintf("%s cannot give a right that it does not have: to %s %s; leave out the role that allows it, or use a token with admin", e.Who, e.Operation, e.Path)
}

// ComplexError means that the rules of a principal are too many to compare.
type ComplexError struct{ Who string }

// Error implements error.
func (e *ComplexError) Error() string {
	return fmt.Sprintf("the policies of %s are too many to compare with what it gives away; use a token with admin", e.Who)
}

// Request is a kind of request that there is: a method and a path, where a segment in braces
// such as {host} stands for any name.
type Request struct{ Method, Path string }

// Covers returns nil if a principal may send all requests that another one may, of those
// that there are, and otherwise a ForeignError, an ExceedsError or a ComplexError. Whoever
// lets somebody in, by whatever way, must cover the one that is let in.
func Covers(who, other Principal, requests []Request) error {
	if who.Tenant != AnyTenant && who.Tenant != other.Tenant {
		return &ForeignError{Who: who.title(), Tenant: other.Tenant}
	}
	c := comparison{who: who, other: other, left: maxCompared}
	for _, request := range requests {
		if err := c.compare(request.Method, patternOf(Rule{Path: request.Path}), 0, who.sets(), other.sets()); err != nil {
			return err
		}
	}
	return nil
}

// maxCompared bounds how often a rule is looked at, and by that the time.
const maxCompared = 500_000

// comparison looks at each request with the names that rules have, and with one that none
// has.
type comparison struct {
	who, other Principal
	// left is how often a rule may still be looked at.
	left int
}

// unnamed is a segment that no rule names.
const unnamed = "\x00"

// compare compares the rules of who and other on a request, with each value that its
// parameters from the n-th segment on can have.
func (c *comparison) compare(method string, path []string, n int, has, gives [][]Rule) error {
	has, gives = c.matching(has, path, n), c.matching(gives, path, n)
	if c.left < 0 {
		return &ComplexError{Who: c.who.title()}
	}
	for n < len(path) && !isParameter(path[n]) {
		n++
	}
	if n == len(path) {
		return c.at(method, path, has, gives)
	}
	for _, name := range c.valuesAt(path, n, slices.Concat(has, gives)) {
		if err := c.compare(method, slices.Concat(path[:n], []string{name}, path[n+1:]), n+1, has, gives); err != nil {
			return err
		}
	}
	return nil
}

// matching returns of each set the rules that match a path for some value of its parameters
// from the n-th segment on.
func (c *comparison) matching(sets [][]Rule, path []string, n int) [][]Rule {
	narrowed := make([][]Rule, len(sets))
	for i, set := range sets {
		c.left -= len(set)
		for _, rule := range set {
			if rule.matchesSome(path, n) {
				narrowed[i] = append(narrowed[i], rule)
			}
		}
	}
	return narrowed
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }

// valuesAt returns the values of the n-th segment on which rules can differ.
func (c *comparison) valuesAt(path []string, n int, sets [][]Rule) []string {
	ofTenant := n == 3 && path[2] == "tenants"
	if ofTenant && c.other.Tenant != AnyTenant {
		return []string{c.other.Tenant}
	}
	values := []string{unnamed}
	if ofTenant {
		values = append(values, AnyTenant)
	}
	for _, set := range sets {
		for _, rule := range set {
			if pattern := patternOf(rule); n < len(pattern) && pattern[n] != "*" && pattern[n] != "**" {
				values = append(values, pattern[n])
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// at compares the rules on one request.
func (c *comparison) at(method string, path []string, has, gives [][]Rule) error {
	path, err := located(c.other, path)
	if err != nil {
		return nil //nolint:nilerr // other may not send it, whatever its roles
	}
	operation := operationOf(method, path)
	if !allowed(gives, operation, path) || allowed(has, operation, path) {
		return nil
	}
	shown := strings.ReplaceAll("/"+strings.Join(path, "/"), unnamed, "*")
	return &ExceedsError{Who: c.who.title(), Operation: operation, Path: shown}
}
