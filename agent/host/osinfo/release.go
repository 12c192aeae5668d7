package osinfo

import (
	"path/filepath"
	"strings"
)

// Release is what os-release(5) says about a system.
type Release struct {
	// ID is the system, such as "debian"; "linux" if the file does not say.
	ID string
	// VersionID is the version as the file has it, such as "12", and Version the most
	// precise one that is known, such as "12.9".
	VersionID, Version string
	// Codename is the name of the version, such as "bookworm".
	Codename string
	// Like are the systems that this one is derived from, such as "debian" for Ubuntu.
	Like []string
	// Name is the name for people, such as "Debian GNU/Linux 12 (bookworm)".
	Name string
	// ImageID and ImageVersion are those of a system that is built as an image.
	ImageID, ImageVersion string
}

// ReadRelease reads etc/os-release below root or, if there is none,
// usr/lib/os-release.
func ReadRelease(root string) (Release, error) {
	text, err := readText(filepath.Join(root, "etc/os-release"))
	if err == nil && text == "" {
		text, err = readText(filepath.Join(root, "usr/lib/os-release"))
	}
	if err != nil {
		return Release{}, err
	}
	// Debian keeps the point release here alone.
	point, err := readText(filepath.Join(root, "etc/debian_version"))
	if err != nil {
		return Release{}, err
	}
	return ParseRelease(text, point), nil
}

// ParseRelease reads the text of os-release(5) and, for Debian, of
// /etc/debian_version. A line that is no assignment is ignored, as the manual says.
func ParseRelease(text, debianVersion string) Release {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, isAssignment := strings.Cut(strings.TrimSpace(line), "=")
		if isAssignment && !strings.HasPrefix(name, "#") {
			values[name] = clean(unquote(value))
		}
	}
	release := Release{
		ID: values["ID"], VersionID: values["VERSION_ID"], Codename: values["VERSION_CODENAME"], Like: strings.Fields(values["ID_LIKE"]),
		Name: values["PRETTY_NAME"], ImageID: values["IMAGE_ID"], ImageVersion: values["IMAGE_VERSION"],
	}
	if release.ID == "" {
		release.ID = "linux"
	}
	release.Version = release.VersionID
	candidates := strings.Fields(values["VERSION"])
	if release.ID == "debian" {
		candidates = strings.Fields(debianVersion)
	}
	// Ubuntu has "24.04" and "24.04.1 LTS (Noble Numbat)".
	if len(candidates) > 0 && release.VersionID != "" && strings.HasPrefix(candidates[0], release.VersionID+".") {
		release.Version = clean(candidates[0])
	}
	if release.Version == "" { // Debian testing has no version.
		release.Version = release.Codename
	}
	return release
}

// Is reports whether the system is id or derived from it.
func (r Release) Is(id string) bool {
	if r.ID == id {
		return true
	}
	for _, like := range r.Like {
		if like == id {
			return true
		}
	}
	return false
}

func (r Release) version() string { return strings.TrimSpace(r.ID + " " + r.Version) }

func (r Release) image() string { return strings.TrimSpace(r.ImageID + " " + r.ImageVersion) }

// unquote removes the quoting of a shell: 'a', "a", and a backslash before a
// character, except between single quotes.
func unquote(word string) string {
	var plain strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == '\\' && quote != '\'' && i+1 < len(word):
			i++
			plain.WriteByte(word[i])
		default:
			plain.WriteByte(c)
		}
	}
	return plain.String()
}
