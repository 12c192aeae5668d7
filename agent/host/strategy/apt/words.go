package apt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// packageWord is a package, or a pattern of packages, with or without an architecture
// and a version. It begins with no "-", so apt takes it for no option.
var packageWord = text.Pattern(`^[a-z0-9*?][a-z0-9+.*?-]*(:[a-z0-9-]+)?(=[A-Za-z0-9][A-Za-z0-9.+:~-]*)?$`)

// listed is what lists packages, for errors.
const listed = "only of the release"

// checkWords checks the packages of a list.
func checkWords(words []string) error {
	for _, word := range words {
		if !packageWord().MatchString(word) {
			return notPackage(listed, word)
		}
		if name, _, exact := strings.Cut(word, "="); exact && strings.ContainsAny(name, "*?") {
			return patternHasVersion(listed, word)
		}
	}
	return nil
}

func notPackage(field, word string) error {
	return fmt.Errorf("%s: %.100q is not a package; use a name such as nginx, a pattern such as linux-image-*, or name=version", field, word)
}

func patternHasVersion(field, word string) error {
	return fmt.Errorf("%s: %.100q names a version; a pattern has none", field, word)
}

// exactly are the packages of a list that are to have a version.
func exactly(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.Contains(word, "=") })
}
