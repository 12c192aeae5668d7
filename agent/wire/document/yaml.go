package document

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

const nullTag = "!!null"

// readYAML reads all documents of a text, except those that have only comments.
func readYAML(body []byte) ([]*Document, error) {
	var all []*Document
	for documents := yaml.NewDecoder(bytes.NewReader(body)); ; {
		var root yaml.Node
		err := documents.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, errYAML(err)
		case len(root.Content) != 1, bare(root.Content[0]):
			continue
		}
		d := &Document{}
		r := yamlReader{builder{document: d}}
		r.value(r.root(), root.Content[0])
		all = append(all, d)
	}
}

// bare reports whether a document has no text between its marks.
func bare(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == nullTag && n.Value == "" }

func errYAML(err error) error {
	return Problems{{Message: "cannot read YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
}

type yamlReader struct{ builder }

func (r *yamlReader) value(n *node, from *yaml.Node) {
	n.line = cmp.Or(n.line, from.Line)
	r.decorations(n, from)
	switch from.Kind {
	case yaml.MappingNode:
		r.mapping(n, from)
	case yaml.SequenceNode:
		if r.open(n, list) {
			for _, item := range from.Content {
				r.value(r.item(n), item)
			}
		}
	case yaml.ScalarNode:
		r.scalar(n, from)
	case yaml.AliasNode:
		r.reject(n, "*"+from.Value, "YAML aliases are not read here; write the value out")
	case yaml.DocumentNode:
	}
}

// decorations rejects the features of YAML that JSON does not have: an author who uses
// one expects an effect, and there would be none.
func (r *yamlReader) decorations(n *node, from *yaml.Node) {
	switch {
	case from.Anchor != "":
		r.reject(n, "&"+from.Anchor, "YAML anchors are not read here; leave it out")
	case from.Style&yaml.TaggedStyle != 0:
		r.reject(n, from.Tag, "YAML tags are not read here; leave it out")
	}
}

func (r *yamlReader) mapping(n *node, from *yaml.Node) {
	if !r.open(n, object) {
		return
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == nullTag:
			r.reject(r.node(n, "?"), "", "the key is no text; use text")
			continue
		case key.Tag == "!!merge":
			r.reject(r.node(n, key.Value), "", "YAML merge keys are not read here; write the keys out")
			continue
		}
		child := r.field(n, key.Value)
		child.line = key.Line
		r.decorations(child, key)
		r.value(child, value)
	}
}

func (r *yamlReader) scalar(n *node, from *yaml.Node) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case from.Style&quoted != 0:
		n.kind, n.written = text, from.Value
	case from.Tag == nullTag:
		r.null(n)
	default:
		n.kind, n.written = plain, from.Value
	}
}
