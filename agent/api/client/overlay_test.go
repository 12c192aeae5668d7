package client

import (
	"encoding/json"
	"reflect"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOverlay: a write keeps the members that the type does not know, at every level,
// and deletes those that it knows and does not want.
func TestOverlay(t *testing.T) {
	t.Parallel()
	const friday = `"days-of-week":"Friday","start-time":"01:00","timezone":"UTC","duration":"4h"`
	const monday = `"days-of-week":"Monday","start-time":"22:30","timezone":"UTC","duration":"2h"`
	for name, row := range map[string]struct{ base, next, want string }{
		"nothing there":         {``, `{"worker-applications":[{"name":"a"}]}`, `{"worker-applications":[{"name":"a"}]}`},
		"all known":             {`{"maintenance-windows":[]}`, `{"worker-applications":[]}`, `{"worker-applications":[]}`},
		"beside":                {`{"future":{"deep":[1]},"worker-applications":[]}`, `{"maintenance-windows":[]}`, `{"future":{"deep":[1]},"maintenance-windows":[]}`},
		"digits":                {`{"future":12345678901234567890}`, `{}`, `{"future":12345678901234567890}`},
		"another case is known": {`{"future":1,"Worker-Applications":[{"name":"a"}]}`, `{}`, `{"future":1}`},
		"by name": {
			`{"worker-applications":[{"name":"a","x":1},{"name":"b","x":2}]}`,
			`{"worker-applications":[{"name":"b"},{"name":"c"}]}`,
			`{"worker-applications":[{"name":"b","x":2},{"name":"c"}]}`,
		},
		"reordered and respelt": {
			`{"maintenance-windows":[{` + friday + `,"x":1},{` + monday + `,"x":2}]}`,
			`{"maintenance-windows":[{"days-of-week":"monday","start-time":"22:30","timezone":"UTC","duration":"120m"},{` + friday + `}]}`,
			`{"maintenance-windows":[{"days-of-week":"monday","start-time":"22:30","timezone":"UTC","duration":"120m","x":2},{` + friday + `,"x":1}]}`,
		},
		"changed beside one that stays": {
			`{"maintenance-windows":[{` + friday + `,"x":1},{` + monday + `,"x":2}]}`,
			`{"maintenance-windows":[{"days-of-week":"Friday","start-time":"01:00","timezone":"UTC","duration":"5h"},{` + monday + `}]}`,
			`{"maintenance-windows":[{"days-of-week":"Friday","start-time":"01:00","timezone":"UTC","duration":"5h","x":1},{` + monday + `,"x":2}]}`,
		},
		"removed with its own": {
			`{"maintenance-windows":[{` + friday + `,"x":1},{` + monday + `,"x":2}]}`,
			`{"maintenance-windows":[{` + monday + `}]}`,
			`{"maintenance-windows":[{` + monday + `,"x":2}]}`,
		},
		"another window has none of it": {
			`{"maintenance-windows":[{` + friday + `,"x":1}]}`,
			`{"maintenance-windows":[{"days-of-week":"Sunday","start-time":"03:00","duration":"9h"}]}`,
			`{"maintenance-windows":[{"days-of-week":"Sunday","start-time":"03:00","duration":"9h"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var next v1.OSUpgrade
			if err := json.Unmarshal([]byte(row.next), &next); err != nil {
				t.Fatal(err)
			}
			got, err := Configs.Over(Stored[v1.OSUpgrade]{body: json.RawMessage(row.base)}, next)
			if err != nil || !reflect.DeepEqual(parsed(t, string(got)), parsed(t, row.want)) {
				t.Errorf("got %s, %v; want %s", got, err, row.want)
			}
		})
	}
}

func TestOverlay_nestedObjects(t *testing.T) {
	t.Parallel()
	base := `{"hooks":{"drain":{"type":"http","x":1},"x":2},"checks":{"fleet":[{"type":"tcp","x":3}]},"exempt":{"labels":{"any":"key"}}}`
	var next v1.Rollout
	if err := json.Unmarshal([]byte(`{"hooks":{"drain":{"type":"http","url":"http://127.0.0.1/"}}}`), &next); err != nil {
		t.Fatal(err)
	}
	got, err := Rollouts.Over(Stored[v1.Rollout]{body: json.RawMessage(base)}, next)
	want := `{"hooks":{"drain":{"type":"http","url":"http://127.0.0.1/","x":1},"x":2}}`
	if err != nil || !reflect.DeepEqual(parsed(t, string(got)), parsed(t, want)) {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestHasUnknown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		``:                                        false,
		`{"stages":[{"name":"a"}]}`:               false,
		`{"exempt":{"labels":{"any":"key"}}}`:     false,
		`{"future":null}`:                         true,
		`{"stages":[{"name":"a"},{"x":1}]}`:       true,
		`{"checks":{"fleet":[{"type":"a"}]}}`:     false,
		`{"hooks":{"drain":{"type":"a","y":{}}}}`: true,
	} {
		if got := (Stored[v1.Rollout]{body: json.RawMessage(body)}).HasUnknown(); got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	value, err := tree(json.RawMessage(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
