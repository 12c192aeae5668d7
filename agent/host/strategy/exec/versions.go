package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxVersionsSize = 1 << 20
	maxPackages     = 10_000
)

// parseVersions parses the output of the script versions: one flat JSON object of
// strings, or lines of a package, blanks and its version.
func parseVersions(data []byte) (map[string]string, error) {
	if len(data) > maxVersionsSize {
		return nil, fmt.Errorf("it is more than %d bytes", maxVersionsSize)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("line %d: it is not UTF-8", lineAt(data, len(validPrefix(data))))
	}
	parse := parseVersionLines
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		parse = parseVersionObject
	}
	versions := table{}
	if err := parse(data, versions); err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, errors.New(`it names no package; it should be lines like "kernel 6.1.0", or {"kernel": "6.1.0"}`)
	}
	return versions, nil
}

// table collects packages and refuses invalid ones.
type table map[string]string

func (t table) add(line int, name, version string) error {
	for _, word := range []string{name, version} {
		if word == "" || strings.ContainsFunc(word, unicode.IsControl) {
			return fmt.Errorf("line %d: package %.100q has version %.100q; both should be text without control characters", line, name, version)
		}
	}
	if _, twice := t[name]; twice {
		return fmt.Errorf("line %d: package %.100q is repeated; name each package once", line, name)
	}
	if len(t) == maxPackages {
		return fmt.Errorf("line %d: there are more than %d packages; print those that matter", line, maxPackages)
	}
	t[name] = version
	return nil
}

func parseVersionLines(data []byte, versions table) error {
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return fmt.Errorf(`line %d: %.100q is not a package, blanks and its version; use a line like "kernel 6.1.0"`, number, strings.TrimRight(line, "\r\n"))
		}
		if err := versions.add(number, words[0], words[1]); err != nil {
			return err
		}
	}
	return nil
}

// parseVersionObject decodes token by token, because decoding into a map would not
// find a repeated name.
func parseVersionObject(data []byte, versions table) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	line := func() int { return lineAt(data, int(decoder.InputOffset())) }
	token := func() (json.Token, error) {
		t, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: it is not JSON: %w", line(), err)
		}
		return t, nil
	}
	if _, err := token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := token()
		if err != nil {
			return err
		}
		version, err := token()
		if err != nil {
			return err
		}
		text, ok := version.(string)
		if !ok {
			return fmt.Errorf(`line %d: the version of package %.100q is not a string; use a flat object like {"kernel": "6.1.0"}`, line(), name)
		}
		if err := versions.add(line(), fmt.Sprint(name), text); err != nil {
			return err
		}
	}
	if _, err := token(); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: there is more after the object; print exactly one object", line())
	}
	return nil
}

// lineAt returns the line number of an offset. The first line is 1.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// validPrefix returns the bytes before the first byte that is not UTF-8.
func validPrefix(data []byte) []byte {
	end := 0
	for end < len(data) {
		r, size := utf8.DecodeRune(data[end:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		end += size
	}
	return data[:end]
}
