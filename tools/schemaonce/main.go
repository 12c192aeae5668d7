// Schemaonce rewrites the pages that tfplugindocs has made, so that each nested schema is
// printed once, and so is each long description: the schema of a check was in the page of the
// rollout three times.
//
//	go run ./schemaonce FOLDER
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemaonce FOLDER")
		os.Exit(2)
	}
	err := filepath.WalkDir(os.Args[1], func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(once(string(page))), 0o644)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemaonce:", err)
		os.Exit(1)
	}
}

// anchor is the line that begins a nested schema; tfplugindocs prints those below it right
// after it.
const anchor = `<a id="nestedatt--`

// once replaces each nested schema that the page has already printed by a link to it.
func once(page string) string {
	head, rest, found := strings.Cut(page, anchor)
	if !found {
		return page
	}
	rest, tail := untilHeading(rest)
	sections := strings.Split(rest, anchor)
	printed, links, said := map[string]string{}, []string{}, map[string]string{}
	for i := 0; i < len(sections); {
		id := sections[i][:strings.Index(sections[i], `"`)]
		end := i + 1
		for end < len(sections) && strings.HasPrefix(sections[end], id+"--") {
			end++
		}
		// The schema and those below it, without where they are.
		schema := strings.NewReplacer(id, "", name(id), "").Replace(strings.TrimSpace(strings.Join(sections[i:end], "")))
		first, known := printed[schema]
		if !known {
			printed[schema] = id
			head += anchor + onceEach(sections[i], id, said)
			i++
			continue
		}
		links = append(links, "[below for nested schema](#nestedatt--"+id+")", "[the schema of `"+name(first)+"`](#nestedatt--"+first+")")
		i = end
	}
	return strings.NewReplacer(links...).Replace(strings.TrimRight(head, "\n")+"\n") + tail
}

// long is from which length on an attribute is printed once, if two schemas have it that differ in
// others.
const long = 120

// onceEach replaces what long attributes of a schema mean by a link to the schema that has said it
// before. said has the schema of each line.
func onceEach(schema, id string, said map[string]string) string {
	lines := strings.Split(schema, "\n")
	for i, line := range lines {
		what, _, described := strings.Cut(line, ") ")
		switch first, known := said[line]; {
		case !described || len(line) < long || !strings.HasPrefix(line, "- `"):
		case known:
			lines[i] = what + ") As in [`" + name(first) + "`](#nestedatt--" + first + ")."
		default:
			said[line] = id
		}
	}
	return strings.Join(lines, "\n")
}

// untilHeading cuts the nested schemas at the next heading of the page.
func untilHeading(rest string) (schemas, tail string) {
	if at := strings.Index(rest, "\n## "); at >= 0 {
		return rest[:at], rest[at:]
	}
	return rest, ""
}

// name is the attribute of an anchor: checks.after_host.
func name(id string) string { return strings.ReplaceAll(id, "--", ".") }
