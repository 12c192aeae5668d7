package document

import (
	"regexp"
	"strconv"
)

type kind int

const (
	broken  kind = iota // Has a problem already, and no value.
	object              // Keys and values.
	list                // Items.
	text                // JSON's string, YAML's quoted scalar.
	literal             // JSON's number or boolean.
	plain               // YAML's unquoted scalar: what it is, its reader says.
)

// node is a value of a document and where it stands.
type node struct {
	kind   kind
	parent *node
	// key or index tell which one of the parent's values it is.
	key   string
	index int
	// place counts the nodes before it in the text.
	place   int
	written string
	// null tells that it is broken because it is null.
	null   bool
	items  []*node
	keys   []string
	fields map[string]*node
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

var simpleKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// path returns where the node stands, such as "hosts[2].name"; that of the
// whole document is empty.
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.parent.kind == list:
		return n.parent.path() + "[" + strconv.Itoa(n.index) + "]"
	case !simpleKey.MatchString(n.key):
		return n.parent.path() + "[" + quote(n.key) + "]"
	case n.parent.parent == nil:
		return n.key
	}
	return n.parent.path() + "." + n.key
}

// value returns what the node holds, for people.
func (n *node) value() string {
	switch n.kind {
	case object:
		return "{...}"
	case list:
		return "[...]"
	case broken, text, literal, plain:
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
	case broken, text, plain:
	}
	return quote(n.written)
}
