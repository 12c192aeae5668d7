package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// random fills a value: sometimes a part of it is zero, nil or empty.
func random(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(4) == 0 {
		return
	}
	switch v.Kind() { //nolint:exhaustive // The others are not in what the API returns.
	case reflect.String:
		v.SetString([]string{"", "a", "<b> & \"c\"\n", "ä"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(100))
	case reflect.Uint64:
		v.SetUint(r.Uint64()) // More digits than a floating point number has.
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		random(r, v.Elem(), depth)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"b":[1,"<c>"],"a":null}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			random(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf(map[string]string{"k": "v"}).Convert(v.Type()))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<30), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() && depth < 6 {
				random(r, v.Field(i), depth+1)
			}
		}
	}
}

// choose returns a random selection of fields of a type.
func choose(r *rand.Rand, t reflect.Type, depth int) fields {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth > 3 || len(members(t)) == 0 {
		return nil
	}
	chosen := fields{}
	for name, below := range members(t) {
		switch r.IntN(3) {
		case 0:
			chosen[name] = nil
		case 1:
			chosen[name] = choose(r, below, depth+1)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	return chosen
}

// TestSelection checks that the selected fields are those of the whole, with the same values
// and in the same order, for everything that the API returns.
func TestSelection(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{
		reflect.TypeFor[[]v1.Host](), reflect.TypeFor[v1.Host](), reflect.TypeFor[[]v1.Run](), reflect.TypeFor[*v1.Run](), reflect.TypeFor[v1.State](),
		reflect.TypeFor[v1.AuditLog](), reflect.TypeFor[v1.HostPlan](), reflect.TypeFor[[]v1.Window](), reflect.TypeFor[[]v1.Token](),
		reflect.TypeFor[[]v1.WebhookState](), reflect.TypeFor[v1.Rollout](), reflect.TypeFor[v1.Kept[v1.OSUpgrade]](), reflect.TypeFor[v1.Kept[v1.Calendar]](),
	} {
		r := rand.New(rand.NewPCG(1, uint64(len(of.String()))))
		for range 300 {
			whole := reflect.New(of).Elem()
			random(r, whole, 0)
			shown := of
			if of.Kind() == reflect.Struct && of.Name() != "" && of.NumField() > 0 && of.Field(0).Name == "Value" {
				shown = of.Field(0).Type // The fields of what is kept are those of its value.
			}
			wanted := choose(r, shown, 0)
			if wanted == nil {
				continue
			}
			value, err := wanted.of(shown, whole.Interface())
			if err != nil {
				t.Fatal(err)
			}
			got, err := plainJSON(value)
			if err != nil {
				t.Fatal(err)
			}
			text, err := plainJSON(whole.Interface())
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if want := pick(t, d, wanted); got != nil && string(got) != want {
				t.Fatalf("of %s the fields %v are\n%s\nwant\n%s\nof\n%s", of, wanted, got, want, text)
			}
		}
	}
}

func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// pick returns the selected fields of the next value of a JSON text, in their order.
func pick(t *testing.T, d *json.Decoder, wanted fields) string {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token {
	case json.Delim('['):
		text := "["
		for d.More() {
			if len(text) > 1 {
				text += ","
			}
			text += pick(t, d, wanted)
		}
		_, _ = d.Token()
		return text + "]"
	case json.Delim('{'):
		text := "{"
		for d.More() {
			name, _ := d.Token()
			below, chosen := wanted[fmt.Sprint(name)]
			part := pick(t, d, below)
			if wanted != nil && !chosen {
				continue
			}
			if len(text) > 1 {
				text += ","
			}
			text += fmt.Sprintf("%q:%s", name, part)
		}
		_, _ = d.Token()
		return text + "}"
	}
	text, err := plainJSON(token)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHiddenFields checks that a field which is not in the JSON form cannot be selected.
func TestHiddenFields(t *testing.T) {
	t.Parallel()
	type one struct {
		Shown  string `json:"shown"`
		Hidden string `json:"-"`
	}
	value := one{"s", "h"}
	if got, err := (fields{"-": nil}).of(reflect.TypeFor[one](), value); err == nil {
		t.Errorf("it is shown: %v", got)
	}
	for _, wanted := range []fields{{"-": nil}, {"Hidden": nil}, {"": nil}} {
		if got, err := plainJSON(selection{wanted, value}); err != nil || string(got) != "{}" {
			t.Errorf("%v is %s, %v", wanted, got, err)
		}
	}
}
