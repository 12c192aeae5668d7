package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs_links: each link from page to page, and to a heading or a nested schema, leads
// somewhere.
func TestDocs_links(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	found := 0
	eachPage(t, func(path, page string) {
		for _, match := range link.FindAllStringSubmatch(page, -1) {
			target := path
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(path), match[1])
			}
			found++
			text, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: %s leads nowhere", path, match[0])
				continue
			}
			if match[2] != "" && !anchors(string(text))[match[2]] {
				t.Errorf("%s: %s has no such heading in %s", path, match[0], target)
			}
		}
	})
	if found < 50 {
		t.Errorf("%d links found, want 50 at least", found)
	}
}

// TestDocs_once: what an attribute means stands in a page once. A link leads to it from
// each other attribute of the same schema, such as from each list of checks.
func TestDocs_once(t *testing.T) {
	t.Parallel()
	description := regexp.MustCompile("(?m)^- `\\w+` \\(.{120,}$")
	eachPage(t, func(path, page string) {
		seen := map[string]bool{}
		for _, line := range description.FindAllString(page, -1) {
			if seen[line] {
				t.Errorf("%s has twice: %s", path, line)
			}
			seen[line] = true
		}
	})
}

// TestDocs_groups: each page of the provider is in a group of the navigation. A registry puts
// those without a group below all others, which have more than 20 guides for the agent.
func TestDocs_groups(t *testing.T) {
	t.Parallel()
	group := regexp.MustCompile(`(?m)^subcategory: "(Declared|Runs and hosts|Access)"$`)
	eachPage(t, func(path, page string) {
		if below := filepath.Base(filepath.Dir(path)); below != "guides" && below != "docs" && !group.MatchString(page) {
			t.Errorf("%s has no group: set subcategory in its template", path)
		}
	})
}

func eachPage(t *testing.T, look func(path, page string)) {
	t.Helper()
	err := filepath.WalkDir("../docs", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		look(path, string(page))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors are those of a page: of its headings, as a registry makes them, and its own.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		slug := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all["#"+strings.ReplaceAll(slug, " ", "-")] = true
	}
	for _, anchor := range regexp.MustCompile(`<a id="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		all["#"+anchor[1]] = true
	}
	return all
}
