package dnf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// packageWord is a package, or a pattern of packages, with or without a version. It
// begins with no "-", so dnf takes it for no option.
var packageWord = text.Pattern(`^[A-Za-z0-9*?_][A-Za-z0-9+.*?_-]*(=[A-Za-z0-9][A-Za-z0-9.+:~^_-]*)?$`)

// listed is what lists packages, for errors.
const listed = "only of the release"

// checkWords checks packages, or patterns of them, and whether one of them may name a version.
func checkWords(field string, words []string, versions bool) error {
	for _, word := range words {
		if !packageWord().MatchString(word) {
			return fmt.Errorf("%s: %.100q is not a package; use a name such as nginx, a pattern such as kernel-*, or name=version", field, word)
		}
		if name, _, exact := strings.Cut(word, "="); exact && (strings.ContainsAny(name, "*?") || !versions) {
			return fmt.Errorf("%s: %.100q names a version; a pattern has none", field, word)
		}
	}
	return nil
}

// checkWhat returns an error if dnf cannot install what a release selects.
func (s *call) checkWhat() error {
	if s.what.Distribution != "" {
		return strategy.Fail(message.Artifact, fmt.Errorf("the release goes to %s of the distribution, and dnf upgrades within one; leave distribution out", s.what.Distribution))
	}
	exact := slices.DeleteFunc(slices.Clone(s.what.Listed()), func(word string) bool { return !strings.Contains(word, "=") })
	return strategy.Fail(message.Artifact, checkWords(listed, exact, true))
}
