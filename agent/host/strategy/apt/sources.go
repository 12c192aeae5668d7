package apt

import (
	"fmt"
	"path/filepath"
	"strings"
)

// sourceEntry is a source by its address and suite.
type sourceEntry struct{ uri, suite string }

// rewriting changes the sources of a host from one release to another.
type rewriting struct {
	from, to string
	// own reports whether a source is one of the distribution's.
	own func(sourceEntry) bool
	// disable disables the sources of others; they may not have the new release.
	disable bool
}

// rewritten is a file of sources after it was rewritten.
type rewritten struct {
	text string
	// moved are the sources of the distribution that were changed, foreign those of
	// others.
	moved, foreign []sourceEntry
}

// file rewrites a file of sources.list(5), by its name in the one or the other format.
func (r rewriting) file(name, text string) (rewritten, error) {
	if filepath.Ext(name) == ".sources" {
		return r.stanzas(text)
	}
	return r.lines(text)
}

// suite returns the name of a suite in the new release: that of the release itself,
// of its updates ("bookworm-security"), or the old form of security ("buster/updates").
func (r rewriting) suite(suite string) (string, bool) {
	rest, ok := strings.CutPrefix(suite, r.from)
	switch {
	case ok && rest == "/updates":
		return r.to + "-security", true
	case ok && (rest == "" || rest[0] == '-'):
		return r.to + rest, true
	}
	return suite, false
}

// lines rewrites the format of one line for each source.
func (r rewriting) lines(text string) (rewritten, error) {
	var out rewritten
	var b strings.Builder
	for number, line := range strings.SplitAfter(text, "\n") {
		words, err := splitSource(line)
		if err != nil {
			return rewritten{}, fmt.Errorf("line %d: %w", number+1, err)
		}
		if words == nil {
			b.WriteString(line)
			continue
		}
		entry := sourceEntry{words.uri, words.suite}
		suite, moved := r.suite(words.suite)
		switch {
		case !r.own(entry):
			out.foreign = append(out.foreign, entry)
			if r.disable {
				b.WriteString("# " + disabledNote + ": ")
			}
			b.WriteString(line)
		case moved:
			out.moved = append(out.moved, entry)
			b.WriteString(line[:words.suiteAt] + suite + line[words.suiteAt+len(words.suite):])
		default:
			b.WriteString(line)
		}
	}
	out.text = b.String()
	return out, nil
}

// disabledNote is what a disabled source is marked with.
const disabledNote = "disabled by osupgrade for the release upgrade"

// sourceLineWords are the parts of a line with where they begin.
type sourceLineWords struct {
	uri, suite     string
	uriAt, suiteAt int
}

// splitSource splits a line of a source; a comment or a blank line is none.
func splitSource(line string) (*sourceLineWords, error) {
	plain, _, _ := strings.Cut(line, "#")
	rest := strings.TrimLeft(plain, " \t\r\n")
	if strings.TrimSpace(rest) == "" {
		return nil, nil
	}
	word := func() string {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t\r\n")
		if end < 0 {
			end = len(rest)
		}
		var w string
		w, rest = rest[:end], rest[end:]
		return w
	}
	kind := word()
	if kind != "deb" && kind != "deb-src" {
		return nil, fmt.Errorf("%.100q is not a source; it begins with deb or deb-src", strings.TrimSpace(line))
	}
	rest = strings.TrimLeft(rest, " \t")
	if strings.HasPrefix(rest, "[") {
		_, after, closed := strings.Cut(rest, "]")
		if !closed {
			return nil, fmt.Errorf("%.100q has options without a closing bracket", strings.TrimSpace(line))
		}
		rest = after
	}
	words := &sourceLineWords{}
	for _, part := range []struct {
		text *string
		at   *int
	}{{&words.uri, &words.uriAt}, {&words.suite, &words.suiteAt}} {
		rest = strings.TrimLeft(rest, " \t")
		*part.at = len(plain) - len(rest)
		*part.text = word()
	}
	if words.uri == "" || words.suite == "" {
		return nil, fmt.Errorf("%.100q has no address or no suite", strings.TrimSpace(line))
	}
	return words, nil
}

// stanzas rewrites the deb822 format.
func (r rewriting) stanzas(text string) (rewritten, error) {
	var out rewritten
	var b strings.Builder
	for _, stanza := range splitStanzas(text) {
		changed, err := r.stanza(stanza, &out)
		if err != nil {
			return rewritten{}, err
		}
		b.WriteString(changed)
	}
	out.text = b.String()
	return out, nil
}

// splitStanzas splits a text after each run of blank lines.
func splitStanzas(text string) []string {
	var stanzas []string
	start, blank := 0, false
	for at, line := range lineStarts(text) {
		isBlank := strings.TrimSpace(line) == ""
		if blank && !isBlank {
			stanzas = append(stanzas, text[start:at])
			start = at
		}
		blank = isBlank
	}
	return append(stanzas, text[start:])
}

// lineStarts returns each line by where it begins.
func lineStarts(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		at := 0
		for line := range strings.Lines(text) {
			if !yield(at, line) {
				return
			}
			at += len(line)
		}
	}
}

// stanza rewrites one stanza: its suites, or its Enabled.
func (r rewriting) stanza(stanza string, out *rewritten) (string, error) {
	fields := stanzaFields(stanza)
	if fields["types"] == "" && fields["uris"] == "" || strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
		return stanza, nil
	}
	uris, suites := strings.Fields(fields["uris"]), strings.Fields(fields["suites"])
	if len(uris) == 0 || len(suites) == 0 {
		return "", fmt.Errorf("%.100q has no URIs or no Suites", stanza)
	}
	own := false
	var entries []sourceEntry
	for _, uri := range uris {
		for _, suite := range suites {
			entries = append(entries, sourceEntry{uri, suite})
			own = own || r.own(sourceEntry{uri, suite})
		}
	}
	if !own {
		out.foreign = append(out.foreign, entries...)
		if !r.disable {
			return stanza, nil
		}
		return "# " + disabledNote + "\nEnabled: no\n" + withoutField(stanza, "enabled"), nil
	}
	moved := false
	for _, e := range entries {
		if _, ok := r.suite(e.suite); ok {
			moved = true
			out.moved = append(out.moved, e)
		}
	}
	if !moved {
		return stanza, nil
	}
	return eachWord(stanza, "suites", func(suite string) string {
		suite, _ = r.suite(suite)
		return suite
	}), nil
}

// eachWord replaces the words of a field of a stanza, which may go on in lines that begin
// with a blank, and keeps all else.
func eachWord(stanza, field string, replace func(string) string) string {
	var b strings.Builder
	within := false
	for line := range strings.Lines(stanza) {
		name, rest, isField := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "#"):
			b.WriteString(line)
			continue
		case line[0] == ' ' || line[0] == '\t' || !isField:
			name, rest = "", line
		default:
			within = strings.EqualFold(strings.TrimSpace(name), field)
			name += ":"
		}
		b.WriteString(name)
		if within {
			rest = replaceWords(rest, replace)
		}
		b.WriteString(rest)
	}
	return b.String()
}

// replaceWords replaces the words of a line, and keeps its blanks.
func replaceWords(line string, replace func(string) string) string {
	var b strings.Builder
	for line != "" {
		switch end := strings.IndexAny(line, " \t\r\n"); end {
		case 0:
			b.WriteByte(line[0])
			line = line[1:]
		case -1:
			b.WriteString(replace(line))
			line = ""
		default:
			b.WriteString(replace(line[:end]))
			line = line[end:]
		}
	}
	return b.String()
}

// stanzaFields returns the fields of a stanza by their names in small letters.
func stanzaFields(stanza string) map[string]string {
	fields, last := map[string]string{}, ""
	for line := range strings.Lines(stanza) {
		switch name, value, isField := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				fields[last] += " " + strings.TrimSpace(line)
			}
		case isField:
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(value)
		}
	}
	return fields
}

// withoutField removes a field of a stanza.
func withoutField(stanza, field string) string {
	var b strings.Builder
	within := false
	for line := range strings.Lines(stanza) {
		name, _, isField := strings.Cut(line, ":")
		if line[0] != ' ' && line[0] != '\t' && line[0] != '#' {
			within = isField && strings.EqualFold(strings.TrimSpace(name), field)
		}
		if !within {
			b.WriteString(line)
		}
	}
	return b.String()
}
