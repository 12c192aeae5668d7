package document

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

type kind int

const (
	broken  kind = iota // Has a problem already, and no value.
	object              // Keys and values.
	list                // Items.
	text                // JSON's string, YAML's quoted scalar.
	literal             // JSON's number or boolean.
	removed             // Taken away by a change: as if it were not there.
	plain               // YAML's unquoted scalar: what it is, its reader says.
)

// node is a value of a document and where it stands.
type node struct {
	kind   kind
	parent *node
	// key or index tell which one of the parent's values it is.
	key   string
	index int
	// place counts the nodes before it in the text, and line is the line that it
	// begins on.
	place, line int

	written string
	// null tells that it is broken because it is null, twice that its key is there again.
	null, twice bool
	items       []*node
	keys        []string
	fields      map[string]*node
	// asked holds the keys that a reader knows.
	asked map[string]bool
}

func (n *node) depth() int {
	depth := 0
	for ; n != nil; n = n.parent {
		depth++
	}
	return depth
}

var simpleKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`) })

// path returns where the node stands, such as "hosts[2].name"; that of the
// whole document is empty.
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.parent.kind == list:
		return n.parent.path() + "[" + strconv.Itoa(n.index) + "]"
	case !simpleKey().MatchString(n.key):
		return n.parent.path() + "[" + quote(n.key) + "]"
	case n.parent.parent == nil:
		return n.key
	}
	return n.parent.path() + "." + n.key
}

// towards returns the value in the node that is the field or holds it.
func (n *node) towards(field string) *node {
	for _, key := range n.keys {
		if child := n.fields[key]; within(field, child.path()) {
			return child
		}
	}
	for _, item := range n.items {
		if within(field, item.path()) {
			return item
		}
	}
	return nil
}

// within reports whether a field is the one at a path or lies in it.
func within(field, path string) bool {
	rest, ok := strings.CutPrefix(field, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// value returns what the node holds, for people.
func (n *node) value() string {
	switch n.kind {
	case object:
		return "{...}"
	case list:
		return "[...]"
	case broken, removed, text, literal, plain:
	}
	return n.written
}

// describe names the value in a message.
func (n *node) describe() string {
	switch n.kind {
	case object:
		return "an object"
	case list:
		return "a list"
	case literal:
		return Clip(n.written)
	case broken, removed, text, plain:
	}
	return quote(n.written)
}

// builder makes the nodes of a document in the order of its text.
type builder struct {
	document *Document
	count    int
}

// root makes the node of the whole document.
func (b *builder) root() *node {
	b.document.root = b.node(nil, "")
	return b.document.root
}

// node makes a node in a parent, which does not know of it yet.
func (b *builder) node(parent *node, key string) *node {
	n := &node{parent: parent, key: key, place: b.count}
	b.count++
	return n
}

// item makes the next node in a list.
func (b *builder) item(parent *node) *node {
	n := b.node(parent, "")
	n.index = len(parent.items)
	parent.items = append(parent.items, n)
	return n
}

// field makes a node in an object. If the object has the key already, that is a problem,
// and the node is read only to find the problems in it.
func (b *builder) field(parent *node, key string) *node {
	n := b.node(parent, key)
	if first, twice := parent.fields[key]; twice {
		first.twice = true
		b.reject(n, "", keyTwice)
		return n
	}
	parent.keys = append(parent.keys, key)
	parent.fields[key] = n
	return n
}

// open makes a node an object or a list, unless it is nested too deep; then it
// is broken, and false is returned.
func (b *builder) open(n *node, k kind) bool {
	if n.depth() > MaxDepth {
		b.reject(n, "", fmt.Sprintf("nested too deep; use at most %d levels", MaxDepth))
		return false
	}
	n.kind = k
	if k == object {
		n.fields, n.asked = map[string]*node{}, map[string]bool{}
	}
	return true
}

func (b *builder) reject(n *node, value, message string) {
	b.document.found.add(n, value, func() string { return message })
}

func (b *builder) null(n *node) {
	n.null = true
	b.reject(n, "null", "null is not a value; give one or leave it out")
}
