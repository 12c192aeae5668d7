package document

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Unknown are members of a document that its readers do not know, and where they are. They
// are kept for clients of a newer version, and nothing reads them. The zero value has none.
type Unknown struct {
	members []unknownMember
	fields  map[string]Unknown
	items   map[int]Unknown
}

type unknownMember struct {
	key   string
	value []byte
}

// None reports whether there is no unknown member.
func (u Unknown) None() bool {
	return len(u.members) == 0 && len(u.fields) == 0 && len(u.items) == 0
}

// Unknown returns the members that no reader has asked for. They are no problem from then
// on. One that is null is as if it were absent (RFC 7396).
func (d *Document) Unknown() Unknown { return d.unknown(d.root) }

func (d *Document) unknown(n *node) Unknown {
	var found Unknown
	for _, key := range n.keys {
		child := n.fields[key]
		switch {
		case n.asked[key]:
			if below := d.unknown(child); !below.None() {
				found.below(key, below)
			}
		default:
			n.asked[key] = true
			d.permitNull(child)
			if child.kind != broken && child.kind != removed {
				found.members = append(found.members, unknownMember{key, child.json(Unknown{})})
			}
		}
	}
	for i, item := range n.items {
		if below := d.unknown(item); !below.None() {
			found.at(i, below)
		}
	}
	return found
}

// permitNull has null be a value in a part of the document that nothing reads.
func (d *Document) permitNull(n *node) {
	if n.null {
		d.found.forgive(n)
	}
	for _, key := range n.keys {
		d.permitNull(n.fields[key])
	}
	for _, item := range n.items {
		d.permitNull(item)
	}
}

func (u *Unknown) below(key string, value Unknown) {
	if u.fields == nil {
		u.fields = map[string]Unknown{}
	}
	u.fields[key] = value
}

func (u *Unknown) at(index int, value Unknown) {
	if u.items == nil {
		u.items = map[int]Unknown{}
	}
	u.items[index] = value
}

// Into returns a JSON text with the unknown members in their places. A place that the text
// does not have is left out.
func (u Unknown) Into(text []byte) ([]byte, error) {
	if u.None() {
		return text, nil
	}
	d, err := Parse(JSON, text)
	if err != nil {
		return nil, err
	}
	return d.root.json(u), nil
}

// Carried returns the unknown members that stay when a JSON text replaces another one,
// which had them: those of each object that is still there. An entry of a list is still
// there if one has its name, or is equal to it.
func (u Unknown) Carried(from, to []byte) (Unknown, error) {
	if u.None() {
		return u, nil
	}
	before, err := Parse(JSON, from)
	if err != nil {
		return Unknown{}, err
	}
	after, err := Parse(JSON, to)
	if err != nil {
		return Unknown{}, err
	}
	return u.carried(before.root, after.root), nil
}

func (u Unknown) carried(from, to *node) Unknown {
	if from == nil || to == nil || from.kind != to.kind {
		return Unknown{}
	}
	stays := Unknown{members: u.members}
	for key, below := range u.fields {
		if c := below.carried(from.fields[key], to.fields[key]); !c.None() {
			stays.below(key, c)
		}
	}
	taken := map[int]bool{}
	for i, item := range from.items {
		below, has := u.items[i]
		if !has {
			continue
		}
		j := slices.IndexFunc(to.items, func(n *node) bool { return !taken[n.index] && sameEntry(item, n) })
		if j < 0 {
			continue
		}
		taken[j] = true
		if c := below.carried(item, to.items[j]); !c.None() {
			stays.at(j, c)
		}
	}
	return stays
}

// sameEntry reports whether two entries of lists are the same one: by their names if both
// have one.
func sameEntry(a, b *node) bool {
	const key = "name"
	if a, b := a.fields[key], b.fields[key]; a != nil && b != nil {
		return a.written == b.written
	}
	return bytes.Equal(a.json(Unknown{}), b.json(Unknown{}))
}

// json writes a node as JSON, with unknown members in it.
func (n *node) json(u Unknown) []byte {
	var b bytes.Buffer
	n.writeJSON(&b, u)
	return b.Bytes()
}

func (n *node) writeJSON(b *bytes.Buffer, u Unknown) {
	switch n.kind {
	case object:
		b.WriteByte('{')
		for i, key := range n.keys {
			writeKey(b, i, key)
			n.fields[key].writeJSON(b, u.fields[key])
		}
		for i, m := range u.members {
			writeKey(b, len(n.keys)+i, m.key)
			b.Write(m.value)
		}
		b.WriteByte('}')
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b, u.items[i])
		}
		b.WriteByte(']')
	case literal:
		b.WriteString(n.written)
	case text:
		writeText(b, n.written)
	case plain:
		if json.Valid([]byte(n.written)) {
			b.WriteString(n.written)
		} else {
			writeText(b, n.written)
		}
	case broken, removed:
		b.WriteString("null")
	}
}

func writeKey(b *bytes.Buffer, before int, key string) {
	if before > 0 {
		b.WriteByte(',')
	}
	writeText(b, key)
	b.WriteByte(':')
}

func writeText(b *bytes.Buffer, text string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)      // A text always has a JSON form.
	b.Truncate(b.Len() - 1) // Encode ends with a line break.
}
