package whole

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/singleton"
)

// Rules are those of an object that is owned as a whole: an attribute that is
// not declared has its default, and what somebody else sets there is a change
// of this resource.
func (k *Kind[T]) Rules() singleton.Rules[T] {
	var none T
	return singleton.Rules[T]{
		Merged:     func(want, _ T) T { return want },
		Settled:    k.Same,
		Unchanged:  k.unchanged,
		Conflicts:  k.conflicts,
		OwnsAll:    func(T) bool { return true },
		Restricted: func(content, _ T) T { return content },
		Emptied:    func(T) T { return none },
		// An object that declares nothing is one as long as the resource is
		// there; only a deletion asks.
		Empty: func(content T) bool { return k.unchanged(content, none) },
	}
}

// Same reports whether two objects mean the same.
func (k *Kind[T]) Same(a, b T) bool { return reflect.DeepEqual(k.meaning(a), k.meaning(b)) }

// unchanged reports whether two objects declare the same, whatever the
// spelling. One that writes a default out is not the same as one that leaves it
// to the server.
func (k *Kind[T]) unchanged(a, b T) bool {
	return reflect.DeepEqual(Tree(k.Canonical(a)), Tree(k.Canonical(b)))
}

func (k *Kind[T]) meaning(object T) map[string]any { return Tree(k.Meaning(object)) }

// conflicts compares three ways, attribute by attribute (terraform.md 4.5 rule
// 5): what the resource knew, what the server has, and what is wanted.
func (k *Kind[T]) conflicts(prior, server, want T) []singleton.Conflict {
	was, is, shall := k.meaning(prior), k.meaning(server), k.meaning(want)
	members := maps.Clone(was)
	maps.Copy(members, is)
	maps.Copy(members, shall)
	var found []singleton.Conflict
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !reflect.DeepEqual(is[name], was[name]) && !reflect.DeepEqual(is[name], shall[name]) {
			found = append(found, singleton.Conflict{
				Attribute: k.Attribute(name),
				Was:       entries(Tree(prior)[name]), Server: entries(Tree(server)[name]), Want: entries(Tree(want)[name]),
			})
		}
	}
	return found
}

// entries shows a member for people, a list entry by entry.
func entries(value any) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		return []string{value}
	case []any:
		var lines []string
		for _, entry := range value {
			lines = append(lines, entries(entry)...)
		}
		return lines
	default:
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return []string{err.Error()}
		}
		return []string{strings.TrimSpace(text.String())}
	}
}
