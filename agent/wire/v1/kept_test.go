package v1

import (
	"encoding/json"
	"strings"
	"testing"
)

// merge returns a value with the changes of a body.
func merge[T any](form Form[T], now T, contentType, body string) (T, error) {
	merged, err := form.Merge(Kept[T]{Value: now}, contentType, []byte(body), false)
	return merged.Value, err
}

// TestUnknownMembers writes a rollout again and again, with and without keep, and looks at
// what is stored.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	const put, patch, keep = "PUT", "PATCH", true
	const match = `"match":{"hosts":["h"]}`
	var now Kept[Rollout]
	for _, row := range []struct {
		method, body string
		keep         bool
		want         string
	}{
		{put, `{"splay":"1h","x":1}`, false, "x: unknown key"},
		{
			put, `{"splay":"1h","x":{"a":[1,null,"<"]},"z":null,"timeouts":{"reboot":"5m","boot":"1m"},"stages":[{"name":"a",@,"y":true},{"name":"b"}]}`, keep,
			`{"stages":[{"name":"a",@,"y":true},{"name":"b"}],"splay":"1h","timeouts":{"reboot":"5m","boot":"1m"},"x":{"a":[1,null,"<"]}}`,
		},
		{
			put, `{"stages":[{"name":"b",@},{"name":"a","soak":"1h"}],"timeouts":{"reboot":"6m"}}`, false,
			`{"stages":[{"name":"b",@},{"name":"a","soak":"1h","y":true}],"timeouts":{"reboot":"6m","boot":"1m"},"x":{"a":[1,null,"<"]}}`,
		},
		{patch, `{"timeouts":{"boot":"2m"}}`, false, "timeouts.boot: unknown key"},
		{patch, `{"timeouts":{"boot":"2m"},"x":null}`, keep, `{"stages":[{"name":"b",@},{"name":"a","soak":"1h","y":true}],"timeouts":{"reboot":"6m","boot":"2m"}}`},
		{patch, `{"paused":true,"stages":[{"name":"c",@},{"name":"a"}]}`, false, `{"stages":[{"name":"c",@},{"name":"a","y":true}],"paused":true,"timeouts":{"reboot":"6m","boot":"2m"}}`},
		{patch, `{"timeouts":null}`, false, `{"stages":[{"name":"c",@},{"name":"a","y":true}],"paused":true}`},
		{put, `{"paused":true,"x":{}}`, keep, `{"paused":true,"x":{}}`},
		{put, `{"paused":true,"x":1,"x":2}`, keep, "x: the key is there twice"},
		{put, `{"format":2}`, keep, "format: the store has a member of this name"},
		{put, `{"paused":"yes","x":1}`, keep, "paused: "},
		{put, `{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, keep, "nested too deep"},
	} {
		body, want := strings.ReplaceAll(row.body, "@", match), strings.ReplaceAll(row.want, "@", match)
		write := RolloutForm.Decode
		if row.method == patch {
			write = RolloutForm.Merge
		}
		next, err := write(now, "application/json", []byte(body), row.keep)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Fatalf("%s %s: %v; want %s", row.method, body, err, want)
			}
			continue
		}
		text, err := next.MarshalJSON()
		if err != nil || string(text) != want {
			t.Fatalf("%s %s: stored %s, %v; want %s", row.method, body, text, err, want)
		}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(string(text), "}")+`,"format":1}`), &now); err != nil {
			t.Fatal(err)
		}
		if again, err := now.MarshalJSON(); err != nil || string(again) != want {
			t.Errorf("%s is read as %s, %v", text, again, err)
		}
	}
}

// TestUnknownMembersOfWindows checks that an entry without a name keeps its unknown members
// while it is the same, wherever it stands, and that YAML says what JSON says.
func TestUnknownMembersOfWindows(t *testing.T) {
	t.Parallel()
	body := "maintenance-windows:\n- {days-of-week: friday, start-time: 01:00, duration: 60m, ring: 3, note: '3', on: yes, off: true}\n"
	now, err := OSUpgradeForm.Decode(Kept[OSUpgrade]{}, inYAML, []byte(body), true)
	if err != nil {
		t.Fatal(err)
	}
	const window = `"days-of-week":"Friday","start-time":"01:00","timezone":"site-local","duration":"1h"`
	const other = `{"days-of-week":"Monday","start-time":"01:00","timezone":"site-local","duration":"1h"}`
	for _, row := range []struct{ body, want string }{
		{"", `{"maintenance-windows":[{` + window + `,"ring":3,"note":"3","on":"yes","off":true}]}`},
		{`{"maintenance-windows":[` + other + `,{` + window + `}]}`, `{"maintenance-windows":[` + other + `,{` + window + `,"ring":3,"note":"3","on":"yes","off":true}]}`},
		{`{"maintenance-windows":[{` + strings.Replace(window, "1h", "2h", 1) + `}]}`, `{"maintenance-windows":[{` + strings.Replace(window, "1h", "2h", 1) + `}]}`},
	} {
		if row.body != "" {
			if now, err = OSUpgradeForm.Decode(now, inJSON, []byte(row.body), false); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := now.MarshalJSON(); err != nil || string(text) != row.want {
			t.Errorf("%s: stored %s, %v; want %s", row.body, text, err, row.want)
		}
	}
}

// TestUnknownMembersThatDifferInCase checks that a kept member which is called like a known one
// but for its case means nothing, and is read back: the object could not be read any more, or
// was paused by it.
func TestUnknownMembersThatDifferInCase(t *testing.T) {
	t.Parallel()
	now, err := RolloutForm.Decode(Kept[Rollout]{}, inJSON, []byte(`{"splay":"1h","PAUSED":true,"Splay":7,"retry-After":"x"}`), true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var again Kept[Rollout]
	if err := json.Unmarshal(text, &again); err != nil || again.Value.Paused || again.Value.Splay != now.Value.Splay {
		t.Fatalf("%s is read as %+v, %v", text, again.Value, err)
	}
	if kept, err := json.Marshal(again); err != nil || string(kept) != string(text) {
		t.Errorf("%s becomes %s, %v", text, kept, err)
	}
}

// TestUnknownMembersAreBounded checks that what is kept counts for the size of an object.
func TestUnknownMembersAreBounded(t *testing.T) {
	t.Parallel()
	now, err := CalendarForm.Decode(Kept[Calendar]{}, inJSON, []byte(`{"kind":"freeze","x":"`+strings.Repeat("x", MaxBody/2)+`"}`), true)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"kind":"freeze","ics":"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:` + strings.Repeat("y", MaxBody/2) + `\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261224\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"}`
	if _, err := CalendarForm.Decode(now, inJSON, []byte(body), false); err == nil || !strings.Contains(err.Error(), "with the members that are kept for newer clients; use at most 1048576") {
		t.Errorf("two halves are taken: %.200v", err)
	}
}
