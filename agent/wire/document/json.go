package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

func readJSON(body []byte) (*Document, error) {
	// The check covers the whole text, so that the tokens need none, and data
	// after the value is an error.
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, Problems{{Message: "cannot read JSON: " + withPosition(body, err)}}
	}
	d := &Document{}
	r := jsonReader{builder: builder{document: d}, tokens: json.NewDecoder(bytes.NewReader(body)), body: body, line: 1}
	r.tokens.UseNumber()
	if err := r.value(r.root()); err != nil {
		return nil, Problems{{Message: "cannot read JSON: " + err.Error()}}
	}
	return d, nil
}

func withPosition(body []byte, err error) string {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok || syntax.Offset < 1 || syntax.Offset > int64(len(body)) {
		return err.Error()
	}
	before := body[:syntax.Offset-1]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d: %v", line, column, err)
}

type jsonReader struct {
	builder
	tokens *json.Decoder
	body   []byte
	// line is the line of the offset read, up to which lines are counted.
	line int
	read int64
}

// here returns the line of the last token.
func (r *jsonReader) here() int {
	to := r.tokens.InputOffset()
	r.line += bytes.Count(r.body[r.read:to], []byte("\n"))
	r.read = to
	return r.line
}

func (r *jsonReader) value(n *node) error {
	token, err := r.tokens.Token()
	if err != nil {
		return err
	}
	if line := r.here(); n.line == 0 {
		n.line = line
	}
	switch v := token.(type) {
	case json.Delim:
		return r.container(n, v)
	case string:
		n.kind, n.written = text, v
	case json.Number:
		n.kind, n.written = literal, v.String()
	case bool:
		n.kind, n.written = literal, fmt.Sprint(v)
	default:
		r.null(n)
	}
	return nil
}

func (r *jsonReader) container(n *node, opening json.Delim) error {
	k := object
	if opening == '[' {
		k = list
	}
	if !r.open(n, k) {
		return r.skip()
	}
	for r.tokens.More() {
		child, err := r.child(n)
		if err != nil {
			return err
		}
		if err := r.value(child); err != nil {
			return err
		}
	}
	_, err := r.tokens.Token()
	return err
}

// child makes the node of the next value in a list or object.
func (r *jsonReader) child(n *node) (*node, error) {
	if n.kind == list {
		return r.item(n), nil
	}
	key, err := r.tokens.Token()
	if err != nil {
		return nil, err
	}
	child := r.field(n, fmt.Sprint(key))
	child.line = r.here()
	return child, nil
}

// skip reads to the end of a list or object that has just been opened. It does not
// recurse, because it is used for texts that are nested too deep.
func (r *jsonReader) skip() error {
	for depth := 1; depth > 0; {
		token, err := r.tokens.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}
