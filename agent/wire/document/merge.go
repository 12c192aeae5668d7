package document

// MergePatch is the content type of a change of an object (RFC 7396).
const MergePatch = "application/merge-patch+json"

// Over makes the document a whole object: what it does not have is taken from base
// (RFC 7396). A member that is null removes that of base, objects are merged member by
// member, and anything else replaces what base has. Base must be without problems, and
// cannot be used any more.
func (d *Document) Over(base *Document) { d.over(d.root, base.root) }

func (d *Document) over(n, base *node) {
	if n.kind != object {
		return
	}
	if base == nil || base.kind != object {
		base = &node{}
	}
	for _, key := range n.keys {
		if child := n.fields[key]; child.null {
			d.found.forgive(child)
			child.kind = removed
		} else {
			d.over(child, base.fields[key])
		}
	}
	for _, key := range base.keys {
		if _, changed := n.fields[key]; !changed {
			child := base.fields[key]
			child.parent = n
			n.keys, n.fields[key] = append(n.keys, key), child
		}
	}
}
