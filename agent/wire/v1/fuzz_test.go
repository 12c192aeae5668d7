package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// checkDecoded requires that a body gives problems, or else a value that keeps
// its meaning in either format.
func checkDecoded[T any](t *testing.T, contentType string, body []byte, decode func(string, []byte) (T, error)) {
	t.Helper()
	value, err := decode(contentType, body)
	if err != nil {
		if found, ok := errors.AsType[Problems](err); !ok || len(Answer(found).Errors) == 0 {
			t.Fatalf("error without problems: %v", err)
		}
		return
	}
	for _, accept := range []string{inJSON, inYAML} {
		as, encoded, err := Encode(accept, value)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(as, encoded); err != nil || !reflect.DeepEqual(again, value) {
			t.Fatalf("%+v written as\n%s\nread as %+v, %v", value, encoded, again, err)
		}
	}
}

func FuzzOSUpgradeJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeOSUpgrade) })
}

func FuzzOSUpgradeYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeOSUpgrade) })
}

func FuzzStartJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeStart) })
}

// FuzzHealthJSON checks that a request for the health gives problems or is written as it was read.
func FuzzHealthJSON(f *testing.F) {
	f.Add([]byte(`{"environment":"basel"}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeAskHealth) })
}

func FuzzRefreshJSON(f *testing.F) {
	f.Add([]byte(`{"hosts":["h01","h02"]}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeRefresh) })
}

func FuzzSkipWindow(f *testing.F) {
	f.Add([]byte(`{"environment":"shops","window-start":"2026-11-29T01:00:00Z","reason":"sale"}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeSkipWindow) })
}

func FuzzMoveJSON(f *testing.F) {
	f.Add([]byte(`{"environment":"basel"}`))
	f.Add([]byte(`{"environment":""}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeMove) })
}

func FuzzStartYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeStart) })
}

// checkRollout requires of a rollout that is right that it stays so with its
// defaults and in its canonical form, each of which is the same when done again.
func checkRollout(t *testing.T, contentType string, body []byte) {
	t.Helper()
	checkDecoded(t, contentType, body, DecodeRollout)
	r, err := DecodeRollout(contentType, body)
	if err != nil {
		return
	}
	for name, change := range map[string]func(Rollout) Rollout{"defaults": Rollout.WithDefaults, "canonical": Rollout.Canonical} {
		once := change(r)
		if wrong := once.Validate(); len(wrong) > 0 {
			t.Fatalf("%s of %+v: %v", name, r, wrong)
		}
		if !reflect.DeepEqual(change(once), once) {
			t.Fatalf("%s of %+v, twice: %+v; once: %+v", name, r, change(once), once)
		}
	}
}

func FuzzRolloutJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkRollout(t, inJSON, body) })
}

func FuzzRolloutYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkRollout(t, inYAML, body) })
}

// checkCalendar requires of a calendar that is right that it stays so in its
// canonical form, which is the same when done again.
func checkCalendar(t *testing.T, contentType string, body []byte) {
	t.Helper()
	checkDecoded(t, contentType, body, DecodeCalendar)
	if name, kept, err := DecodeNewCalendar(contentType, body, true); err == nil && (!names.Valid(name) || len(kept.Value.Validate()) > 0) {
		t.Errorf("%s is read as calendar %q, %+v", body, name, kept.Value)
	}
	c, err := DecodeCalendar(contentType, body)
	if err != nil {
		return
	}
	once := c.Canonical()
	if wrong := once.Validate(); len(wrong) > 0 {
		t.Fatalf("canonical of %+v: %v", c, wrong)
	}
	if !reflect.DeepEqual(once.Canonical(), once) || !SameCalendar(c, once) {
		t.Fatalf("canonical of %+v, twice: %+v; once: %+v", c, once.Canonical(), once)
	}
}

func FuzzCalendarJSON(f *testing.F) {
	f.Add([]byte(calendarJSON))
	f.Add([]byte(`{"kind":"freeze","ics":"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261224\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkCalendar(t, inJSON, body) })
}

// FuzzBudgetJSON requires of a disruption budget that is accepted that it is right, and has a limit
// for any number of hosts.
func FuzzBudgetJSON(f *testing.F) {
	f.Add([]byte(`{"name":"racks","per":"rack","max-unavailable":"10%","match":{"labels":{"shop":"basel"}}}`), 7)
	f.Add([]byte(`{"name":"fleet","min-available":"3"}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, present int) {
		name, kept, err := DecodeNewBudget(inJSON, body, true)
		if err != nil || present < 0 || present > 1<<20 {
			return
		}
		if b := kept.Value; !names.Valid(name) || len(b.Validate()) > 0 || b.Limit(present) < 0 || b.MaxUnavailable != "" && b.Limit(present) < 1 {
			t.Errorf("%q: %+v lets %d of %d hosts leave service: %v", name, b, b.Limit(present), present, b.Validate())
		}
	})
}

// FuzzReleaseJSON requires of a release that is accepted that it is right, that it is the same in its
// canonical form, and that JSON and YAML say the same.
func FuzzReleaseJSON(f *testing.F) {
	f.Add([]byte(`{"name":"nov","version":"2.1.0","scheme":"semver","from":[">= 2.0, < 2.1"],"packages":{"select":"security","as-of":"2026-11-21T01:00:00+01:00","except":["b","a"]}}`))
	f.Add([]byte(`{"name":"box","images":[{"platform":"linux/arm64","compatible":"box","url":"https://example.com/b","size":7}],"withdrawn":{"reason":"loses routes"}}`))
	f.Add([]byte(`{"name":"any","data":{"b":[1.50,null,"<"],"a":1e3},"requires":{"kernel":">= 6"},"installs":{"kernel":"6.1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		name, kept, err := DecodeNewRelease(inJSON, body, true)
		if err != nil {
			return
		}
		r := kept.Value
		if !names.Valid(name) || len(r.Validate()) > 0 || !SameRelease(r, r.Canonical()) || release.Changed(r, r.Canonical()) != "" {
			t.Fatalf("%q: %+v: %v", name, r, r.Validate())
		}
		for _, accept := range []string{inJSON, inYAML} {
			as, encoded, err := Encode(accept, r)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ReleaseForm.Decode(Kept[Release]{}, as, encoded, false)
			if err != nil || again.Value.Digest() != r.Digest() {
				t.Fatalf("%s written as\n%s\nread as %+v, %v", r.Text(), encoded, again.Value, err)
			}
		}
	})
}

// FuzzEnvironmentJSON requires of an environment that is accepted that it is right, also in its
// canonical form, which is the same when made again and means the same.
func FuzzEnvironmentJSON(f *testing.F) {
	f.Add([]byte(`{"name":"basel","description":"Basel","match":{"labels":{"shop":"basel"},"hosts":["h1"]},"maintenance-windows":[{"days-of-week":"friday, Monday","start-time":"02:00","duration":"120m"}]}`))
	f.Add([]byte(`{"name":"bern","match":{"roles":["till"],"applications":["app"]},"calendars":["nights","fairs"],"rollout":{"soak":"90m","stages":[{"name":"a"}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		name, kept, err := DecodeNewEnvironment(inJSON, body, true)
		if err != nil {
			return
		}
		e := kept.Value
		again := e.Canonical()
		if EnvironmentName(name) != "" || len(e.Validate()) > 0 || !sameJSON(e, again) || !SameEnvironment(e, again) {
			t.Errorf("%q: %+v is %v, and in canonical form %+v", name, e, e.Validate(), again)
		}
	})
}

func FuzzCalendarYAML(f *testing.F) {
	f.Add([]byte("name: holidays\nkind: freeze\nevents: []\nsince: 2031\n"))
	f.Add([]byte("kind: allow\nevents:\n- start: 2026-12-24T18:00\n  duration: 90m\n  rdate: [2027-01-01T10:30]\n"))
	f.Fuzz(func(t *testing.T, body []byte) { checkCalendar(t, inYAML, body) })
}

func FuzzAskJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, what string, body []byte) {
		checkDecoded(t, inJSON, body, func(contentType string, body []byte) (Ask, error) { return DecodeAsk(what, contentType, body) })
	})
}

func FuzzPreferred(f *testing.F) {
	f.Fuzz(func(t *testing.T, accept string) {
		if _, _, err := Encode(accept, Start{Reason: accept}); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeStart(Preferred(accept), []byte("{}")); err != nil {
			t.Fatalf("the content type for %q cannot be read: %v", accept, err)
		}
	})
}

// decoders are those of the bodies that have no target of their own. One with secrets has
// problems that do not repeat them; the values are compared in JSON.
var decoders = []func(t *testing.T, contentType string, body []byte){
	decoder(DecodeJoin), decoder(DecodeNewJoinToken), decoder(DecodeHostVerdict), decoder(DecodeLogin), decoder(DecodeApproleLogin), decoder(DecodePolicy),
	decoder(DecodeNewToken), decoder(DecodeRotation), decoder(DecodeUser), decoder(DecodeApprole), decoder(DecodeNewSecretID), decoder(DecodeUnseal),
	decoder(DecodePasswordChange), decoder(DecodeTenant), decoder(DecodeWebhookResend), decoder(decodeWebhook),
	decoder(DecodeRewrap), decoder(DecodeCurrentSecret), decoder(DecodeNewSiteCertificate), decoder(DecodeNewHostKey),
}

// decodeWebhook reads a webhook as PUT does.
func decodeWebhook(contentType string, body []byte) (Webhook, error) {
	kept, err := WebhookForm.Decode(Kept[Webhook]{}, contentType, body, false)
	return kept.Value, err
}

func decoder[T any](decode func(string, []byte) (T, error)) func(*testing.T, string, []byte) {
	return func(t *testing.T, contentType string, body []byte) {
		t.Helper()
		checkDecoded(t, contentType, body, decode)
	}
}

// FuzzBodies checks the decoders of tokens, logins, users, approles, policies and of hosts
// that join.
func FuzzBodies(f *testing.F) {
	for i, body := range []string{
		`{"host":"h01","public-key":"UABC","proof":"x"}`, `{"host":"h01","application":"a","ttl":"1h"}`,
		`{"username":"ann","password":"x","tenant":"acme","otp":"1","cookie":false}`, `{"role-id":"a","secret-id":"b"}`,
		`{"name":"p","rest-api":{"rules":[{"path":"/v1/state/**","operations":{"read":"allow"}}]}}`,
		`{"name":"ci","allow":["viewer"],"expires-in":"30d"}`, `{"overlap":"1h"}`, `{"name":"ann","password":"x","token-policies":["viewer"],"token-ttl":"1h"}`,
		`{"name":"r","token-policies":["viewer"],"secret-id-num-uses":0,"secret-id-ttl":"0s"}`, `{"secret-id-num-uses":3,"secret-id-ttl":"1h"}`, `{"passphrase":"x"}`,
		`{"current-password":"correct horse","password":"another horse"}`, `{"name":"acme"}`, `{"ids":["1-2"]}`,
		`{"url":"https://chat.example/hook","secret":"whsec_AAAA","events":["run-opened"]}`,
		`{"way":"key-file","file":"/media/key","current":"c2VjcmV0"}`, `{"current":"c2VjcmV0"}`, `{"names":["site.example","10.0.0.1"],"current":"c2VjcmV0"}`,
		`{"public-key":"UABC","replace":true}`,
	} {
		f.Add(uint8(i), false, []byte(body))
		f.Add(uint8(i), true, []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, yaml bool, body []byte) {
		contentType := inJSON
		if yaml {
			contentType = inYAML
		}
		decoders[int(which)%len(decoders)](t, contentType, body)
	})
}

// FuzzMerge changes a rollout that has unknown members, and checks that what is stored is
// read back as it was, that an empty change changes nothing, and that no unknown member is
// lost by a change that does not know it.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"splay":"1h","x":{"a":[1,null]},"timeouts":{"reboot":"5m","boot":"1m"}}`), []byte(`{"timeouts":null,"x":null}`), true)
	f.Add([]byte("stages:\n- {name: a, y: on, match: {hosts: [h]}}\n- name: b\n"), []byte(`{"stages":[{"name":"b","match":{"hosts":["h"]}},{"name":"a"}]}`), false)
	f.Add([]byte(`{"paused":true}`), []byte(`paused: false`), false)
	f.Fuzz(func(t *testing.T, first, change []byte, keep bool) {
		now, err := RolloutForm.Decode(Kept[Rollout]{}, inYAML, first, true)
		if err != nil {
			return
		}
		same(t, now)
		unchanged, err := RolloutForm.Merge(now, inJSON, []byte(`{}`), keep)
		if err != nil {
			t.Fatalf("%+v cannot be merged with nothing: %v", now, err)
		}
		if a, b := stored(t, now), stored(t, unchanged); !sameJSON(a, b) {
			t.Fatalf("%s merged with nothing is %s", a, b)
		}
		for _, write := range []func(Kept[Rollout], string, []byte, bool) (Kept[Rollout], error){RolloutForm.Decode, RolloutForm.Merge} {
			next, err := write(now, inYAML, change, keep)
			if err != nil {
				if found, ok := errors.AsType[Problems](err); !ok || len(Answer(found).Errors) == 0 {
					t.Fatalf("error without problems: %v", err)
				}
				continue
			}
			if wrong := next.Value.Validate(); len(wrong) > 0 {
				t.Fatalf("%+v is stored: %v", next.Value, wrong)
			}
			same(t, next)
		}
	})
}

func stored(t *testing.T, k Kept[Rollout]) json.RawMessage {
	t.Helper()
	text, err := k.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// same checks that an object is read as it was stored.
func same(t *testing.T, k Kept[Rollout]) {
	t.Helper()
	text := stored(t, k)
	var again Kept[Rollout]
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatalf("%s cannot be read: %v", text, err)
	}
	if b := stored(t, again); !bytes.Equal(text, b) || !SameRollout(k.Value, again.Value) {
		t.Fatalf("%s is read as %s", text, b)
	}
}

// FuzzFleetLock checks that a body gives problems, or else an id and a group that are written and
// read the same.
func FuzzFleetLock(f *testing.F) {
	f.Add([]byte(`{"client_params": {"id": "c988d2509fdf5cdcbed39037c56406fb", "group": "workers"}}`))
	f.Add([]byte(`{"client_params": {"id": "h01", "group": "a b"}}`))
	f.Add([]byte(`{"client_params": `))
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := DecodeFleetLock(body)
		if err != nil {
			if found, ok := errors.AsType[Problems](err); !ok || len(Answer(found).Errors) == 0 {
				t.Fatalf("error without problems: %v", err)
			}
			return
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeFleetLock(encoded); err != nil || again != value || value.ClientParams.ID == "" || value.ClientParams.Group == "" {
			t.Fatalf("%s is read as %+v, and that as %+v, %v", body, value, again, err)
		}
	})
}
