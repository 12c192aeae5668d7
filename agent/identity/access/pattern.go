package access

import (
	"fmt"
	"slices"
	"strings"
)

// Operations returns all operations.
func Operations() []Operation { return slices.Clone(everything) }

// The bounds of a pattern: how many bytes and how many segments it may have.
const maxPattern, maxSegments = 300, 16

// CheckPattern returns what is wrong with the path of a rule.
func CheckPattern(path string) error {
	segments, ok := split(path)
	if !ok || len(path) > maxPattern || len(segments) > maxSegments {
		return fmt.Errorf(`%.100q is no path of a rule; use /NAME/NAME and so on, with at most %d names, "*" for any one of them, and "**" at the end for any number`, path, maxSegments)
	}
	for i, segment := range segments {
		if segment == "**" && i < len(segments)-1 || segment != "*" && segment != "**" && strings.ContainsAny(segment, "*%") {
			return fmt.Errorf(`%.100q has %q, which means nothing there; use "*" as a whole name, and "**" as the last one`, path, segment)
		}
	}
	return nil
}

// InTenant returns the rules that a rule of a tenant's policy amounts to. A path without
// the tenant, such as /v1/config/os-upgrade, is that of the own one, and decisions are of
// the path with it.
func (r Rule) InTenant() []Rule {
	segments := patternOf(r)
	if len(segments) < 3 || !slices.Contains(ownTrees, segments[2]) {
		return []Rule{r}
	}
	whole := r
	whole.Path = "/" + strings.Join(slices.Concat(segments[:2], []string{"tenants", "*"}, segments[2:]), "/")
	// The own token has no tenant in its path.
	return []Rule{r, whole}
}
