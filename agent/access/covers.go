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

// Covers returns nil if a principal may do all that another one may, and otherwise a
// ForeignError, an ExceedsError or a ComplexError. Whoever lets somebody in, by whatever
// way, must cover the one that is let in.
func Covers(who, other Principal) error {
	if who.Tenant != AnyTenant && who.Tenant != other.Tenant {
		return &ForeignError{Who: who.title(), Tenant: other.Tenant}
	}
	c := comparison{who: who, other: other, left: maxCompared}
	for _, set := range other.sets() {
		c.patterns = append(c.patterns, patternsOf(set)...)
	}
	for _, set := range who.sets() {
		c.limits = append(c.limits, patternsOf(set)...)
	}
	return c.below(nil)
}

// maxCompared bounds how often a rule is looked at, and by that the time: some 300 ms. All
// roles at once need a sixth of it.
const maxCompared = 50_000

// comparison looks at one path of each kind: one with the names that patterns have, and one
// with a name that none has.
type comparison struct {
	who, other Principal
	// patterns are those of the rules of other, limits those of who.
	patterns, limits [][]string
	// left is how often a rule may still be looked at.
	left int
}

func patternsOf(set []Rule) [][]string {
	all := make([][]string, len(set))
	for i, rule := range set {
		all[i] = patternOf(rule)
	}
	return all
}

// unnamed is a segment that no pattern names.
const unnamed = "\x00"

// below looks at the paths that begin with some segments.
func (c *comparison) below(path []string) error {
	next, open, within := namesAfter(c.patterns, path)
	limits, limitsOpen, _ := namesAfter(c.limits, path)
	// Where no pattern ends or goes on any more, longer paths are as this one.
	if !within || !open && !limitsOpen {
		return nil
	}
	next = append(append(next, limits...), c.other.Tenant, unnamed)
	slices.Sort(next)
	for _, name := range slices.Compact(next) {
		if c.left -= len(c.patterns) + len(c.limits); c.left < 0 {
			return &ComplexError{Who: c.who.title()}
		}
		longer := append(slices.Clone(path), name)
		if len(longer) == 4 && longer[2] == "tenants" && c.other.Tenant != AnyTenant && name != c.other.Tenant {
			continue
		}
		if err := c.at(longer); err != nil {
			return err
		}
		if err := c.below(longer); err != nil {
			return err
		}
	}
	return nil
}

// namesAfter returns the names that patterns have after a path, whether the path is the
// beginning of a pattern or all of it, and whether a longer path may match one.
func namesAfter(patterns [][]string, path []string) (names []string, open, longer bool) {
	for _, pattern := range patterns {
		i := 0
		for i < len(path) && i < len(pattern) && (pattern[i] == "*" || pattern[i] == path[i]) {
			i++
		}
		longer = longer || i < len(pattern) && (i == len(path) || pattern[i] == "**")
		if i < len(path) {
			continue
		}
		open = true
		if i < len(pattern) && pattern[i] != "*" && pattern[i] != "**" {
			names = append(names, pattern[i])
		}
	}
	return names, open, longer
}

// at looks at one path.
func (c *comparison) at(path []string) error {
	whole, tenant := inTenant(path, c.other.Tenant)
	if !slices.Equal(whole, path) || tenant == "" && c.other.Tenant != AnyTenant && !ofCaller(path) {
		return nil // There is no such request.
	}
	for _, operation := range everything {
		inConfig := len(path) > 1 && path[1] == "config"
		if operation == Create && !inConfig || operation == Execute && inConfig {
			continue
		}
		if c.other.allowed(operation, path) && !c.who.allowed(operation, path) {
			shown := strings.ReplaceAll("/"+strings.Join(path, "/"), unnamed, "*")
			return &ExceedsError{Who: c.who.title(), Operation: operation, Path: shown}
		}
	}
	return nil
}
