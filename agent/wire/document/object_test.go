package document

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, contentType, body string }{
		{"JSON", JSON, `{"name": "10:30", "count": 7, "on": true, "for": "1d4h", "tags": ["a", "01:00"],
			"labels": {"a/b": "1"}, "inner": {"name": "x"}, "hosts": [{"name": "h01"}, {}], "empty": []}`},
		{"YAML", YAML, "name: 10:30\ncount: 7\non: true\nfor: 1d4h\ntags: [a, 01:00]\n" +
			"labels: {a/b: 1}\ninner: {name: x}\nhosts:\n- name: h01\n- {}\nempty: []\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d, err := Parse(row.contentType, []byte(row.body))
			if err != nil {
				t.Fatal(err)
			}
			root := d.Root()
			name, hasName := root.Text("name")
			count, hasCount := root.integer("count", 1, 10)
			on, hasOn := root.bool("on")
			length, hasLength := root.Text("for")
			tags, hasTags := root.Texts("tags")
			labels, hasLabels := root.textMap("labels")
			inner, hasInner := root.Nested("inner")
			innerName, _ := inner.Text("name")
			hosts, hasHosts := root.objects("hosts")
			empty, hasEmpty := root.objects("empty")
			absent, hasAbsent := root.objects("absent")
			for _, host := range hosts {
				host.Text("name")
			}
			switch {
			case d.Err() != nil:
				t.Error(d.Err())
			case !hasName || !hasCount || !hasOn || !hasLength || !hasTags || !hasLabels || !hasInner || !hasHosts || !hasEmpty || hasAbsent:
				t.Error("presence")
			case name != "10:30" || count != 7 || !on || length != "1d4h" || innerName != "x":
				t.Error("scalars", name, count, on, length, innerName)
			case !slices.Equal(tags, []string{"a", "01:00"}) || !maps.Equal(labels, map[string]string{"a/b": "1"}):
				t.Error("texts", tags, labels)
			case len(hosts) != 2 || !hosts[0].Has("name") || hosts[1].Has("name") || empty == nil || absent != nil:
				t.Error("lists", hosts, empty, absent)
			}
		})
	}
}

func TestYAMLScalarsAreTextAsWritten(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ written, want string }{
		{"01:00", "01:00"},
		{"10:30", "10:30"},
		{"630", "630"},
		{"0x10", "0x10"},
		{"1_000", "1_000"},
		{"1e3", "1e3"},
		{"yes", "yes"},
		{"true", "true"},
		{"2026-11-21", "2026-11-21"},
		{".inf", ".inf"},
		{"Friday, Saturday", "Friday, Saturday"},
		{`"10:30"`, "10:30"},
		{"'01:00'", "01:00"},
		{"|-\n  two\n  lines", "two\nlines"},
		{">-\n  one\n  line", "one line"},
		{"4h # half a night", "4h"},
	} {
		t.Run(row.written, func(t *testing.T) {
			t.Parallel()
			d, err := Parse(YAML, []byte("name: "+row.written+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := d.Root().Text("name"); !ok || got != row.want || d.Err() != nil {
				t.Fatalf("%q read as %q, %v, %v; want %q", row.written, got, ok, d.Err(), row.want)
			}
		})
	}
}

func TestWrongTypes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, contentType, body, problem string }{
		{"number for text", JSON, `{"name": 630}`, "name: 630 is not text; put it in quotes"},
		{"boolean for text", JSON, `{"name": true}`, "name: true is not text; put it in quotes"},
		{"list for text", JSON, `{"name": []}`, "name: a list is not text; write text"},
		{"object for text", YAML, "name: {}\n", "name: an object is not text; write text"},
		{"text for number", JSON, `{"count": "7"}`, `count: "7" is not a whole number; use 1 to 10, without quotes`},
		{"quoted number in YAML", YAML, "count: '7'\n", `count: "7" is not a whole number; use 1 to 10, without quotes`},
		{"fraction", JSON, `{"count": 7.5}`, "count: 7.5 is not a whole number; use 1 to 10, without quotes"},
		{"exponent", JSON, `{"count": 1e0}`, "count: 1e0 is not a whole number; use 1 to 10, without quotes"},
		{"octal", YAML, "count: 07\n", `count: "07" is not a whole number; use 1 to 10, without quotes`},
		{"list for number", JSON, `{"count": [1]}`, "count: a list is not a whole number; use 1 to 10, without quotes"},
		{"too small", JSON, `{"count": 0}`, "count: 0 is out of range; use 1 to 10"},
		{"too large", JSON, `{"count": 11}`, "count: 11 is out of range; use 1 to 10"},
		{"more than any integer", JSON, `{"count": 99999999999999999999}`, "count: 99999999999999999999 is out of range; use 1 to 10"},
		{"text for boolean", JSON, `{"on": "true"}`, `on: "true" is not a boolean; use true or false, without quotes`},
		{"number for boolean", JSON, `{"on": 1}`, "on: 1 is not a boolean; use true or false, without quotes"},
		{"yes", YAML, "on: yes\n", `on: "yes" is not a boolean; use true or false, without quotes`},
		{"quoted boolean in YAML", YAML, "on: 'true'\n", `on: "true" is not a boolean; use true or false, without quotes`},
		{"object for boolean", JSON, `{"on": {}}`, "on: an object is not a boolean; use true or false, without quotes"},
		{"number for text", JSON, `{"for": 60}`, "for: 60 is not text; put it in quotes"},
		{"text for list", JSON, `{"tags": "a"}`, `tags: "a" is not a list; write a list`},
		{"number in a list of texts", JSON, `{"tags": ["a", 1]}`, "tags[1]: 1 is not text; put it in quotes"},
		{"text for object", YAML, "inner: a\n", `inner: "a" is not an object; write keys and values`},
		{"text in a list of objects", JSON, `{"hosts": [{}, "h01"]}`, `hosts[1]: "h01" is not an object; write keys and values`},
		{"object for list of objects", JSON, `{"hosts": {}}`, "hosts: an object is not a list; write a list"},
		{"number in a map of texts", JSON, `{"labels": {"libc6:amd64": 2}}`, `labels["libc6:amd64"]: 2 is not text; put it in quotes`},
		{"nested map of texts", JSON, `{"labels": {"a": {}}}`, "labels.a: an object is not text; write text"},
		{
			"several, in the order of the text", JSON, `{"x": 1, "on": 1, "hosts": [{"name": 2, "nam": 3}], "name": null}`,
			"x: unknown key; use count, for, hosts, inner, labels, name, on, tags; on: 1 is not a boolean; use true or false, without quotes; " +
				"hosts[0].name: 2 is not text; put it in quotes; hosts[0].nam: unknown key; did you mean name?; name: null is not a value; give one or leave it out",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if err := read(row.contentType, row.body); errText(err) != row.problem {
				t.Fatalf("error\n%q; want\n%q", errText(err), row.problem)
			}
		})
	}
}

func TestConsequencesOfAProblemAreNotTold(t *testing.T) {
	t.Parallel()
	d, err := Parse(JSON, []byte(`{"hosts": [{"name": 1}, null]}`))
	if err != nil {
		t.Fatal(err)
	}
	hosts, _ := d.Root().objects("hosts")
	for _, host := range hosts {
		host.Text("name")
	}
	err = d.Err(
		Problem{Field: "hosts[0].name", Message: "consequence"},
		Problem{Field: "hosts[1].name", Message: "consequence"},
		Problem{Field: "hosts[10].name", Message: "of its own"},
		Problem{Field: "hosts", Message: "of the list"},
	)
	want := "hosts[0].name: 1 is not text; put it in quotes; hosts[1]: null is not a value; give one or leave it out; " +
		"hosts[10].name: of its own; hosts: of the list"
	if errText(err) != want {
		t.Fatalf("error %q; want %q", errText(err), want)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&body, "%q: 1,", fmt.Sprint("key", i))
	}
	d, err := Parse(JSON, []byte("{"+body.String()+`"`+strings.Repeat("x", 5000)+`": null}`))
	if err != nil {
		t.Fatal(err)
	}
	d.Root().Has("name")
	found, ok := errors.AsType[Problems](d.Err(Problem{Field: "name", Message: "more"}))
	if !ok || len(found) != 101 || found[100].Message != "and 4902 more" {
		t.Fatalf("%d problems, the last is %v", len(found), found[len(found)-1])
	}
	if size := len(found.Error()); size > 20_000 {
		t.Fatalf("%d bytes of problems", size)
	}
}
