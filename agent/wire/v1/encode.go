package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// Encode returns a response in the format that the Accept header of the request prefers: see
// Preferred and Write.
func Encode(accept string, value any) (contentType string, body []byte, err error) {
	contentType = Preferred(accept)
	var text bytes.Buffer
	err = Write(&text, contentType, value)
	return contentType, text.Bytes(), err
}

// Write writes a value as JSON, or as YAML under any of its names, in one piece. In both formats
// the keys, their order and the omitted members are those of the value's JSON form. It fails and
// writes nothing for a value that has no JSON form.
func Write(to io.Writer, contentType string, value any) error {
	write := writeYAML
	if contentType == document.JSON {
		write = writeJSON
	}
	if err := write(to, value); err != nil {
		return fmt.Errorf("cannot encode %T: %w", value, err)
	}
	return nil
}

func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func writeYAML(to io.Writer, value any) error {
	var text bytes.Buffer
	if err := writeJSON(&text, value); err != nil {
		return err
	}
	tokens := json.NewDecoder(&text)
	tokens.UseNumber()
	root, err := yamlOf(tokens)
	if err != nil {
		return err
	}
	body, err := yaml.Marshal(root)
	if err == nil {
		_, err = to.Write(body)
	}
	return err
}

// yamlOf turns the next JSON value into YAML.
func yamlOf(tokens *json.Decoder) (*yaml.Node, error) {
	token, err := tokens.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		kind := yaml.MappingNode
		if v == '[' {
			kind = yaml.SequenceNode
		}
		return yamlContainer(tokens, &yaml.Node{Kind: kind})
	case string:
		return yamlText(v), nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}, nil
	}
}

// yamlContainer reads the content of a list or an object, up to its end. In JSON's
// tokens, as in YAML's nodes, keys and values of an object alternate.
func yamlContainer(tokens *json.Decoder, into *yaml.Node) (*yaml.Node, error) {
	for tokens.More() {
		child, err := yamlOf(tokens)
		if err != nil {
			return nil, err
		}
		into.Content = append(into.Content, child)
	}
	_, err := tokens.Token()
	return into, err
}

// words is text that means itself in each version of YAML without quotes, unless
// it is one of notWords.
var words = text.Pattern(`^[A-Za-z][A-Za-z0-9_/-]*(,? [A-Za-z][A-Za-z0-9_/-]*)*$`)

// lined is text of three plain lines or more, which people read and compare best as
// they are. YAML would rewrite a carriage return.
var lined = text.Pattern(`^[!-~][ -~]*\n([!-~][ -~]*\n)+([!-~][ -~]*\n?)$`)

// notWords are booleans and nothings in YAML 1.1, in lower case.
var notWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// yamlText writes a text so that every reader takes it for one: YAML 1.1 reads
// an unquoted 10:30 as the number 630.
func yamlText(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if lined().MatchString(text) {
		n.Style = yaml.LiteralStyle
		return n
	}
	if !words().MatchString(text) || slices.Contains(notWords, strings.ToLower(text)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// offers are the content types of an answer; of those that a client likes
// equally, the first is sent.
var offers = [...]string{document.JSON, document.YAML, document.XYAML, document.TextYAML}

// Preferred returns the content type that an Accept header prefers: the one of
// the highest quality (RFC 9110 12.5.1), and among equals one that is named over
// one that a wildcard covers. A client that wants none of them gets JSON, which
// RFC 9110 allows and which tells it more than 406 would.
func Preferred(accept string) string {
	best, most := document.JSON, rank{}
	for _, offer := range offers {
		if r := rankOf(offer, accept); r.better(most) {
			best, most = offer, r
		}
	}
	return best
}

// rank is how much a client likes a content type.
type rank struct {
	quality float64
	// precision is 3 when the type is named, 2 for "application/*", 1 for "*/*".
	precision int
}

func (r rank) better(than rank) bool {
	if r.quality == than.quality {
		return r.quality > 0 && r.precision > than.precision
	}
	return r.quality > than.quality
}

// rankOf returns the rank that the most precise range of an Accept header gives
// to a content type. A range that cannot be read says nothing.
func rankOf(offer, accept string) rank {
	var found rank
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if p := precision(media, offer); p > found.precision {
			found = rank{quality: quality(parameters["q"]), precision: p}
		}
	}
	return found
}

func precision(media, offer string) int {
	folder, _, _ := strings.Cut(offer, "/")
	switch media {
	case offer:
		return 3
	case folder + "/*":
		return 2
	case "*/*":
		return 1
	}
	return 0
}

// quality reads a q parameter; an absent one is 1, and so is one that cannot be
// read, since the client named the type.
func quality(text string) float64 {
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(0 <= q && q <= 1) {
		return 1
	}
	return q
}
