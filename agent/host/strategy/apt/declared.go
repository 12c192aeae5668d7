package apt

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Declared is what the options of a host declare to be installed by a run that has no release.
type Declared struct {
	packages release.Packages
	// sources is a file of sources.list(5) to use instead of /etc/apt: that of a dated
	// snapshot, for example.
	sources string
}

// modes are what the values of apt-mode select.
var modes = map[string]string{"all": release.All, "security": release.Security, "packages": release.Listed, "release": release.All}

// packageWord is a package, or a pattern of packages, with or without an architecture
// and a version. It begins with no "-", so apt takes it for no option.
var packageWord = text.Pattern(`^[a-z0-9*?][a-z0-9+.*?-]*(:[a-z0-9-]+)?(=[A-Za-z0-9][A-Za-z0-9.+:~-]*)?$`)

// codename is the name of a release of the distribution, such as "trixie".
var codename = text.Pattern(`^[a-z][a-z0-9]*$`)

// Declare returns what apt-mode, apt-packages, apt-sources and apt-release declare.
func Declare(mode string, words []string, sources, distribution string) (Declared, error) {
	d, err := declare(cmp.Or(mode, "all"), words, sources, distribution)
	if err != nil {
		return Declared{}, fmt.Errorf("cannot use apt strategy: %w", err)
	}
	return d, nil
}

func declare(mode string, words []string, sources, distribution string) (Declared, error) {
	selected, known := modes[mode]
	d := Declared{packages: release.Packages{Select: selected, Only: words, Distribution: distribution}, sources: sources}
	switch {
	case !known:
		return Declared{}, fmt.Errorf("apt-mode: %.100q is invalid; use one of all, security, packages, release", mode)
	case mode == "packages" && len(words) == 0:
		return Declared{}, errors.New("apt-packages: none is given; name the packages that apt-mode packages upgrades")
	case mode != "packages" && len(words) > 0:
		return Declared{}, fmt.Errorf("apt-packages: %s is given, and apt-mode is %s; use apt-mode packages", few(words), mode)
	case mode == "release" && !codename().MatchString(distribution):
		return Declared{}, fmt.Errorf("apt-release: %.100q is not the name of a release; use its codename, such as trixie", distribution)
	case mode != "release" && distribution != "":
		return Declared{}, fmt.Errorf("apt-release: %.100q is given, and apt-mode is %s; use apt-mode release", distribution, mode)
	case mode == "release" && sources != "":
		return Declared{}, errors.New("apt-sources: a release upgrade changes the sources of the host; leave it out")
	case sources != "" && !filepath.IsAbs(sources):
		return Declared{}, fmt.Errorf("apt-sources: %q is invalid; use an absolute path", sources)
	case sources != "" && filepath.Ext(sources) != ".list" && filepath.Ext(sources) != ".sources":
		return Declared{}, fmt.Errorf("apt-sources: %q is invalid; apt reads files that end with .list or .sources", sources)
	}
	return d, checkWords("apt-packages", words)
}

// checkWords checks the packages of a list.
func checkWords(field string, words []string) error {
	for _, word := range words {
		if !packageWord().MatchString(word) {
			return notPackage(field, word)
		}
		if name, _, exact := strings.Cut(word, "="); exact && strings.ContainsAny(name, "*?") {
			return patternHasVersion(field, word)
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
