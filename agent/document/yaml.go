package document

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

const nullTag = "!!null"

func (d *Document) readYAML(body []byte) error {
	r := yamlReader{builder{document: d}}
	documents := yaml.NewDecoder(bytes.NewReader(body))
	var first, second yaml.Node
	err := documents.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return errEmpty()
	case err != nil:
		return errYAML(err)
	case len(first.Content) != 1:
		return errEmpty()
	}
	r.value(r.root(), first.Content[0])
	switch err := documents.Decode(&second); {
	case err == nil:
		return Problems{{Message: "a second YAML document follows; write one"}}
	case !errors.Is(err, io.EOF):
		return errYAML(err)
	}
	return nil
}

func errYAML(err error) error {
	return Problems{{Message: "cannot read YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
}

type yamlReader struct{ builder }

func (r *yamlReader) value(n *node, from *yaml.Node) {
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

// decorations rejects what JSON has no word for: whoever uses it expects
// something of it, and must not be left in the belief that it had an effect.
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
