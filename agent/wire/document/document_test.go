package document

import (
	"strings"
	"testing"
)

// read takes a document as a caller would that knows the keys name, count, on,
// for, tags, labels, inner and hosts.
func read(contentType, body string) error {
	d, err := Parse(contentType, []byte(body))
	if err != nil {
		return err
	}
	root := d.Root()
	root.Text("name")
	root.integer("count", 1, 10)
	root.bool("on")
	root.Text("for")
	root.Texts("tags")
	root.textMap("labels")
	if inner, ok := root.Nested("inner"); ok {
		inner.Text("name")
	}
	hosts, _ := root.objects("hosts")
	for _, host := range hosts {
		host.Text("name")
	}
	return d.Err()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	const json, yaml = `{"name": "a"}`, "name: a\n"
	const accepted = "use application/json, application/yaml, application/x-yaml or text/yaml"
	for _, row := range []struct{ name, contentType, body, problem string }{
		{"none is JSON", "", json, ""},
		{"JSON", "application/json", json, ""},
		{"JSON with a charset", "application/json; charset=utf-8", json, ""},
		{"charset in upper case", `Application/JSON; charset="UTF-8"`, json, ""},
		{"YAML", "application/yaml", yaml, ""},
		{"older YAML", "application/x-yaml", yaml, ""},
		{"oldest YAML", "text/yaml;charset=utf-8", yaml, ""},
		{"JSON is YAML too", "text/yaml", json, ""},
		{"YAML is not JSON", "application/json", yaml, "cannot read JSON: line 1, column 2: invalid character 'a' in literal null (expecting 'u')"},
		{"another type", "text/plain", json, `Content-Type: "text/plain" is not a content type that is read here; ` + accepted},
		{"a form", "application/x-www-form-urlencoded", json, `Content-Type: "application/x-www-form-urlencoded" is not a content type that is read here; ` + accepted},
		{"no type at all", "json;;", json, `Content-Type: "json;;" is not a content type that is read here; ` + accepted},
		{"another charset", "application/json; charset=latin1", json, `Content-Type: "application/json; charset=latin1" has a charset that is not read here; use utf-8`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if err := read(row.contentType, row.body); errText(err) != row.problem {
				t.Fatalf("error %q; want %q", errText(err), row.problem)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, contentType, body, problem string }{
		{"empty", JSON, "", "the document is empty; write an object"},
		{"blank", YAML, " \n", "the document is empty; write an object"},
		{"only a comment", YAML, "# nothing\n", "the document is empty; write an object"},
		{"not UTF-8", JSON, "{\"name\": \"\xff\"}", "the document is not UTF-8 text; use UTF-8"},
		{"UTF-16", YAML, "\xff\xfea\x00:\x00", "the document is not UTF-8 text; use UTF-8"},
		{"cut off", JSON, "{\n  \"name\":", "cannot read JSON: line 2, column 9: unexpected end of JSON input"},
		{"trailing comma", JSON, `{"name": "a",}`, "cannot read JSON: line 1, column 14: invalid character '}' looking for beginning of object key string"},
		{"trailing data", JSON, `{"name": "a"} {}`, "cannot read JSON: line 1, column 15: invalid character '{' after top-level value"},
		{"broken YAML", YAML, "name: a\n  b: c\n", "cannot read YAML: line 2: mapping values are not allowed in this context"},
		{"unknown alias", YAML, "name: *a\n", "cannot read YAML: unknown anchor 'a' referenced"},
		{"second document", YAML, "name: a\n---\nname: b\n", "a second YAML document follows; write one"},
		{"second document that is broken", YAML, "name: a\n---\n[\n", "cannot read YAML: line 3: did not find expected node content"},
		{"trailing text after YAML's end", YAML, "name: a\n...\nname: b\n", "cannot read YAML: line 2: did not find expected <document start>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(row.contentType, []byte(row.body)); errText(err) != row.problem {
				t.Fatalf("error %q; want %q", errText(err), row.problem)
			}
		})
	}
}

func TestProblemsOfStructure(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, contentType, body, problem string }{
		{"null", JSON, `{"name": null}`, "name: null is not a value; give one or leave it out"},
		{"null in YAML", YAML, "name: null\n", "name: null is not a value; give one or leave it out"},
		{"tilde in YAML", YAML, "name: ~\n", "name: null is not a value; give one or leave it out"},
		{"no value in YAML", YAML, "name:\n", "name: null is not a value; give one or leave it out"},
		{"quoted null in YAML is text", YAML, "name: 'null'\n", ""},
		{"null in a list", JSON, `{"tags": ["a", null]}`, "tags[1]: null is not a value; give one or leave it out"},
		{"the document is null", YAML, "null\n", "null is not a value; give one or leave it out"},
		{"the document has only a mark", YAML, "---\n", "the document is empty; write an object"},
		{"the document is a list", JSON, `[]`, "a list is not an object; write keys and values"},
		{"the document is a text", YAML, "name\n", `"name" is not an object; write keys and values`},
		{"duplicate key", JSON, `{"name": "a", "name": "b"}`, "name: the key is there twice; give it once"},
		{"duplicate key in YAML", YAML, "hosts: [{name: a, name: b}]\n", "hosts[0].name: the key is there twice; give it once"},
		{"duplicate key, once in quotes", YAML, "name: a\n'name': b\n", "name: the key is there twice; give it once"},
		{"unknown key", JSON, `{"nme": "a"}`, "nme: unknown key; did you mean name?"},
		{"unknown key like no other", JSON, `{"inner": {"colour": "red"}}`, "inner.colour: unknown key; use name"},
		{"unknown key of an object in a list", YAML, "hosts:\n- Name: a\n", "hosts[0].Name: unknown key; did you mean name?"},
		{"unknown key that is no word", JSON, `{"a b\n": 1}`, `["a b\n"]: unknown key; use count, for, hosts, inner, labels, name, on, tags`},
		{"what an unknown key holds is its own affair", JSON, `{"nme": {"x": {"y": 1}}}`, "nme: unknown key; did you mean name?"},
		{"anchor", YAML, "name: &a x\n", "name: YAML anchors are not read here; leave it out"},
		{"anchor on an object", YAML, "inner: &a {name: x}\n", "inner: YAML anchors are not read here; leave it out"},
		{"anchor on a key", YAML, "&a name: x\n", "name: YAML anchors are not read here; leave it out"},
		{"alias", YAML, "tags: [&a x, *a]\n", "tags[0]: YAML anchors are not read here; leave it out; tags[1]: YAML aliases are not read here; write the value out"},
		{"alias as a key", YAML, "tags: [&a x]\n*a : y\n", `tags[0]: YAML anchors are not read here; leave it out; ["?"]: the key is no text; use text`},
		{"tag", YAML, "name: !!str x\n", "name: YAML tags are not read here; leave it out"},
		{"tag on a key", YAML, "!!str name: x\n", "name: YAML tags are not read here; leave it out"},
		{"tag of one's own", YAML, "inner: !mine {name: x}\n", "inner: YAML tags are not read here; leave it out"},
		{"binary", YAML, "name: !!binary YWJj\n", "name: YAML tags are not read here; leave it out"},
		{"merge key", YAML, "inner:\n  <<: {name: x}\n", `inner["<<"]: YAML merge keys are not read here; write the keys out`},
		{"list as a key", YAML, "? [a]\n: x\n", `["?"]: the key is no text; use text`},
		{"null as a key", YAML, "~: x\n", `["?"]: the key is no text; use text`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if err := read(row.contentType, row.body); errText(err) != row.problem {
				t.Fatalf("error\n%q; want\n%q", errText(err), row.problem)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(lists int) string {
		return `{"tags": ` + strings.Repeat("[", lists) + strings.Repeat("]", lists) + "}"
	}
	const tooDeep = "nested too deep; use at most 32 levels"
	for _, contentType := range []string{JSON, YAML} {
		for _, row := range []struct {
			name  string
			lists int
			deep  bool
		}{{"32 levels", 31, false}, {"33 levels", 32, true}, {"5000 levels", 4999, true}} {
			t.Run(row.name+" of "+contentType, func(t *testing.T) {
				t.Parallel()
				err := read(contentType, nested(row.lists))
				if got := strings.Contains(errText(err), tooDeep); got != row.deep {
					t.Fatalf("error %v", err)
				}
				if row.deep && !strings.HasPrefix(strings.SplitN(errText(err), "tags"+strings.Repeat("[0]", 31), 2)[1], ": "+tooDeep) {
					t.Fatalf("error %v at another place", err)
				}
			})
		}
	}
}

func TestWhatFollowsADeepValueIsReadOn(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a": [`, 40) + strings.Repeat(`]}`, 40)
	err := read(JSON, `{"labels": `+deep+`, "nme": "a"}`)
	if !strings.Contains(errText(err), "nme: unknown key") || !strings.Contains(errText(err), "nested too deep") {
		t.Fatalf("error %v", err)
	}
}
