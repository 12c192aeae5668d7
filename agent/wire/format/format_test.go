package format

import (
	"strings"
	"testing"
)

// thing is something stored, and later the same with a member more.
type thing struct {
	Name string `json:"name"`
}

type grown struct {
	thing
	Size int `json:"size,omitempty"`
}

// TestReads checks the rule: N reads N and N-1, what else there is is refused by
// name, and what bears no number is damaged.
func TestReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		newest int
		want   string
		other  bool
	}{
		"the same":               {`{"format":1,"name":"a"}`, 1, "", false},
		"the one before":         {`{"format":1,"name":"a"}`, 2, "", false},
		"the same again":         {`{"format":2,"name":"a"}`, 2, "", false},
		"newer":                  {`{"format":2,"name":["a"]}`, 1, "written by format 2, this version reads 1", true},
		"newer than two":         {`{"format":3,"name":"a"}`, 2, "written by format 3, this version reads 1 and 2", true},
		"older than before":      {`{"format":1,"name":"a"}`, 3, "written by format 1, this version reads 2 and 3", true},
		"a member more":          {`{"format":1,"name":"a","size":7}`, 1, "", false},
		"the number is last":     {`{"name":"a","format":1}`, 1, "", false},
		"a newer one begins so":  {`{"format":12,"name":"a"}`, 1, "written by format 12, this version reads 1", true},
		"a number and no more":   {`{"format":1`, 1, "unexpected end", false},
		"the number is a part":   {`{"format":1.5,"name":"a"}`, 1, "cannot unmarshal number 1.5", false},
		"no number":              {`{"name":"a"}`, 1, "it bears no format number", false},
		"below the first":        {`{"format":-1,"name":"a"}`, 1, "it bears no format number", false},
		"the number is text":     {`{"format":"1","name":"a"}`, 1, "cannot unmarshal string", false},
		"a member of other type": {`{"format":1,"name":["a"]}`, 1, "cannot unmarshal array", false},
		"cut off":                {`{"format":1,"name":"a"`, 1, "unexpected end", false},
		"written over in part":   {`{"format":1,"name":"a"}` + "\x00\x00", 1, "after top-level value", false},
		"nothing":                {"", 1, "unexpected end", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got thing
			err := Kind{"thing", c.newest}.Decode([]byte(c.text), &got)
			switch {
			case c.want == "" && (err != nil || got.Name != "a"):
				t.Errorf("it is read as %+v, %v", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v; want %q", err, c.want)
			case IsUnsupported(err) != c.other:
				t.Errorf("%v is called unsupported: %t", err, !c.other)
			}
		})
	}
}

// TestBothWays checks that what one version writes the next one reads, and the
// other way round once the number has been there for a release.
func TestBothWays(t *testing.T) {
	t.Parallel()
	last, next, afterNext := Kind{"thing", 1}, Kind{"thing", 2}, Kind{"thing", 3}
	for _, c := range []struct {
		writer, reader Kind
		reads          bool
	}{
		{last, last, true},
		{last, next, true},
		{next, last, false},
		{next, afterNext, true},
		{last, afterNext, false},
		{afterNext, next, false},
	} {
		text, err := c.writer.Encode(grown{thing{"a"}, 7})
		if err != nil {
			t.Fatal(err)
		}
		var got thing
		if err := c.reader.Decode(text, &got); (err == nil) != c.reads || IsUnsupported(err) == c.reads {
			t.Errorf("%d reads what %d has written: %v", c.reader.Newest, c.writer.Newest, err)
		}
		if err := c.reader.CheckHeader(c.writer.HeaderValue()); (err == nil) != c.reads || IsUnsupported(err) == c.reads {
			t.Errorf("%d reads the header that %d has written: %v", c.reader.Newest, c.writer.Newest, err)
		}
	}
}

// TestEncode checks what is written.
func TestEncode(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{
		`{"format":1,"name":"a"}`: thing{"a"}, `{"format":1}`: struct{}{},
	} {
		if got, err := (Kind{"thing", 1}).Encode(value); err != nil || string(got) != want {
			t.Errorf("it is %s, %v; want %s", got, err, want)
		}
	}
	for _, value := range []any{[]string{"a"}, nil, "a", func() {}} {
		if got, err := (Kind{"thing", 1}).Encode(value); err == nil {
			t.Errorf("%T is written as %s", value, got)
		}
	}
	for _, value := range []string{"", "one", "0", "1.0"} {
		if err := (Kind{"thing", 1}).CheckHeader(value); err == nil || IsUnsupported(err) {
			t.Errorf("the header %q: %v", value, err)
		}
	}
}

// TestAgree checks in which protocol two versions speak to each other.
func TestAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, other, want int
		err              string
	}{
		{1, 1, 1, ""},
		{1, 2, 1, ""},
		{2, 1, 1, ""},
		{2, 2, 2, ""},
		{3, 2, 2, ""},
		{1, 3, 0, "the other side speaks protocol 2 and 3, this version speaks 1"},
		{3, 1, 0, "the other side speaks protocol 1, this version speaks 2 and 3"},
		{1, 0, 0, "tells no protocol"},
		{1, -1, 0, "tells no protocol"},
	} {
		got, err := agree(c.own, c.other)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%d and %d agree on %d, %v", c.own, c.other, got, err)
		}
	}
	if got, err := Agree(Protocol); err != nil || got != Protocol {
		t.Errorf("this version and itself agree on %d, %v", got, err)
	}
}
