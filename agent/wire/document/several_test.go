package document

import "testing"

func TestParseAll(t *testing.T) {
	t.Parallel()
	all, err := ParseAll(YAML, []byte("# Two of them.\n---\nname: a\n---\n# Nothing.\n---\nname: b\n---\n"))
	if err != nil || len(all) != 2 {
		t.Fatalf("got %d documents, %v", len(all), err)
	}
	for i, want := range []string{"a", "b"} {
		if name, _ := all[i].Root().Text("name"); name != want || all[i].Err() != nil {
			t.Errorf("document %d has the name %q, %v", i, name, all[i].Err())
		}
	}
	if _, err := ParseAll(YAML, []byte("---\n---\n")); err == nil || err.Error() != "the document is empty; write an object" {
		t.Errorf("of no document: %v", err)
	}
	if _, err := ParseAll(YAML, []byte("name: a\n---\nname: [\n")); err == nil {
		t.Error("the second document is broken, and nobody says so")
	}
}

// TestLine checks where a problem is found, in a document after another too.
func TestLine(t *testing.T) {
	t.Parallel()
	const yaml = "first: 1\n---\n# comment\nhosts:\n  - name: a\n\n  - name: b\n    tags: [x,\n      y]\n\"a.b\": {c: 1}\n"
	const json = "{\n \"hosts\": [\n  {\"name\": \"a\"}, {\n   \"tags\":\n    [\"x\", \"y\"]}],\n \"a.b\": {\"c\":\n 1}}"
	second, err := ParseAll(YAML, []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Parse(JSON, []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string][2]int{
		"":                 {4, 1},
		"hosts":            {4, 2},
		"hosts[0].name":    {5, 3},
		"hosts[1]":         {7, 3},
		"hosts[1].tags":    {8, 4},
		"hosts[1].tags[1]": {9, 5},
		"hosts[1].none":    {7, 3},
		"hosts[7].name":    {4, 2},
		`["a.b"].c`:        {10, 6},
		"none":             {4, 1},
	} {
		if got := [2]int{second[1].Line(field), whole.Line(field)}; got != want {
			t.Errorf("%s stands on lines %v, not %v", field, got, want)
		}
	}
}
