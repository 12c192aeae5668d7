package document

import "fmt"

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

// field makes a node in an object. One whose key is there already is a problem,
// and is read only for the problems in it.
func (b *builder) field(parent *node, key string) *node {
	n := b.node(parent, key)
	if _, twice := parent.fields[key]; twice {
		b.reject(n, "", "the key is there twice; give it once")
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
