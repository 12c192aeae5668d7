package document

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// form has a field of each type that Fill knows.
type form struct {
	Name    string            `json:"name"`
	On      bool              `json:"on,omitempty"`
	Count   int               `json:"count,omitempty" within:"1 10"`
	ID      uint64            `json:"id,omitempty" within:"1 9223372036854775807"`
	Retries *int              `json:"retries,omitempty" within:"0 20"`
	Tags    []string          `json:"tags,omitempty"`
	Kept    []string          `json:"kept,omitzero"`
	Labels  map[string]string `json:"labels,omitempty"`
	Inner   *form             `json:"inner,omitempty"`
	Place   place             `json:"place,omitzero"`
	List    []form            `json:"list,omitempty"`
	At      time.Time         `json:"at,omitzero"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
}

// place is a part of form that is always there.
type place struct {
	City string `json:"city,omitempty"`
}

// before is what is there before a body is read.
func before() form {
	return form{Name: "old", On: true, Count: 3, Tags: []string{"old"}, Labels: map[string]string{"old": "1"}, Inner: &form{Name: "old"}, Place: place{City: "basel"}}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body   string
		change func(*form)
	}{
		"nothing":                    {`{}`, func(*form) {}},
		"a text":                     {`{"name": "new"}`, func(f *form) { f.Name = "new" }},
		"a boolean":                  {`{"on": false}`, func(f *form) { f.On = false }},
		"a number":                   {`{"count": 10}`, func(f *form) { f.Count = 10 }},
		"a large number":             {`{"id": 9223372036854775807}`, func(f *form) { f.ID = 1<<63 - 1 }},
		"a number that may be 0":     {`{"retries": 0}`, func(f *form) { f.Retries = new(0) }},
		"texts":                      {`{"tags": ["a", "b"]}`, func(f *form) { f.Tags = []string{"a", "b"} }},
		"no texts are absent":        {`{"tags": []}`, func(f *form) { f.Tags = nil }},
		"no texts are kept":          {`{"kept": []}`, func(f *form) { f.Kept = []string{} }},
		"a map replaces the other":   {`{"labels": {"new": "2"}}`, func(f *form) { f.Labels = map[string]string{"new": "2"} }},
		"no labels are absent":       {`{"labels": {}}`, func(f *form) { f.Labels = nil }},
		"an object replaces another": {`{"inner": {"count": 1}}`, func(f *form) { f.Inner = &form{Count: 1} }},
		"an object without members":  {`{"inner": {}}`, func(f *form) { f.Inner = &form{} }},
		"null for an object":         {`{"inner": null}`, func(f *form) { f.Inner = nil }},
		"a part":                     {`{"place": {"city": "bern"}}`, func(f *form) { f.Place = place{City: "bern"} }},
		"a part replaces another":    {`{"place": {}}`, func(f *form) { f.Place = place{} }},
		"a time":                     {`{"at": "2026-11-21T00:00:00Z"}`, func(f *form) { f.At = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }},
		"a value of any kind":        {`{"raw": {"b": [1.50, null, {"a": true}], "a": "<"}}`, func(f *form) { f.Raw = json.RawMessage(`{"b":[1.50,null,{"a":true}],"a":"<"}`) }},
		"a number of any kind":       {`{"raw": 1e3}`, func(f *form) { f.Raw = json.RawMessage(`1e3`) }},
		"objects":                    {`{"list": [{"name": "a"}, {}]}`, func(f *form) { f.List = []form{{Name: "a"}, {}} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Parse(JSON, []byte(row.body))
			if err != nil {
				t.Fatal(err)
			}
			got, want := before(), before()
			d.Root().Fill(&got)
			row.change(&want)
			if err := d.Err(); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestFillTellsOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	d, err := Parse(JSON, []byte(`{"name": 1, "on": "yes", "count": 11, "id": -1, "retries": null, "tags": {}, "labels": {"a": 1},
		"inner": [], "list": [1, {"inner": {"nam": "x"}}], "colour": "red", "at": "yesterday", "raw": {"a": 1, "a": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got form
	d.Root().Fill(&got)
	want := []string{
		`name: 1 is not text; put it in quotes`,
		`on: "yes" is not a boolean; use true or false, without quotes`,
		`count: 11 is out of range; use 1 to 10`,
		`id: -1 is out of range; use 1 to 9223372036854775807`,
		`retries: null is not a value; give one or leave it out`,
		`tags: an object is not a list; write a list`,
		`labels.a: 1 is not text; put it in quotes`,
		`inner: a list is not an object; write keys and values`,
		`list[0]: 1 is not an object; write keys and values`,
		`list[1].inner.nam: unknown key; did you mean name?`,
		`colour: unknown key; use at, count, id, inner, kept, labels, list, name, on, place, raw, retries, tags`,
		`at: "yesterday" is not a time; use one such as 2026-11-21T00:00:00Z`,
		`raw.a: the key is there twice; give it once`,
	}
	if got := errText(d.Err()); got != strings.Join(want, "; ") {
		t.Errorf("got %s\nwant %s", got, strings.Join(want, "; "))
	}
}

// TestFillEmbedded checks that the members of an embedded struct are those of the object around it.
func TestFillEmbedded(t *testing.T) {
	t.Parallel()
	type Place = place
	type house struct {
		Place
		Number int `json:"number,omitempty" within:"1 999"`
	}
	d, err := Parse(JSON, []byte(`{"city": "bern", "number": 7, "sity": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := house{Place: Place{City: "basel"}}
	d.Root().Fill(&got)
	if want := (house{Place{"bern"}, 7}); got != want || errText(d.Err()) != "sity: unknown key; did you mean city?" {
		t.Errorf("got %+v, %v; want %+v", got, d.Err(), want)
	}
}
