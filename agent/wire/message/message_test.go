package message

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestBodiesAreAvassas checks the bodies byte for byte against those of Avassa's page
// "Subtenant OS upgrade management".
func TestBodiesAreAvassas(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 21, 5, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, got := range map[string][]byte{
		`{"action":"prepare","hosts":["h01","h02"],"not-after":"2026-11-21T04:00:00Z"}`: Command{Action: Prepare, Hosts: []string{"h01", "h02"}, NotAfter: end}.Encode(),
		`{"action":"upgrade","host":"h02"}`:                                             Command{Action: Upgrade, Host: "h02"}.Encode(),
		`{"action":"reboot","host":"h02"}`:                                              Command{Action: Reboot, Host: "h02"}.Encode(),
		`{"action":"upgrade","result":"reboot-required"}`:                               Reply{Action: Upgrade, Result: Result{Outcome: RebootRequired}}.Encode(),
		`{"base-os":"1.0","kernel":"6.1"}`:                                              EncodeVersions(map[string]string{"kernel": "6.1", "base-os": "1.0"}),
	} {
		if string(got) != want {
			t.Errorf("the body is %s, not %s", got, want)
		}
	}
}

// TestMalformed checks that each malformed body is refused with words that
// name what is wrong.
func TestMalformed(t *testing.T) {
	t.Parallel()
	command := func(b []byte) error { _, err := DecodeCommand(b); return err }
	reply := func(b []byte) error { _, err := DecodeReply(b); return err }
	event := func(b []byte) error { _, err := DecodeEvent(b); return err }
	versions := func(b []byte) error { _, err := DecodeVersions(b); return err }
	alive := func(b []byte) error { _, err := DecodeAlive(b); return err }
	for name, c := range map[string]struct {
		decode     func([]byte) error
		body, want string
	}{
		"empty":                      {command, ``, "EOF"},
		"null":                       {command, `null`, "action"},
		"unknown action":             {command, `{"action":"format","host":"h01"}`, `"format"`},
		"prepare of a strange host":  {command, `{"action":"prepare","hosts":["a b"],"not-after":"2026-11-21T04:00:00Z"}`, `"a b"`},
		"prepare without not-after":  {command, `{"action":"prepare","hosts":["h01"]}`, "not-after"},
		"prepare with a host":        {command, `{"action":"prepare","host":"h01"}`, "use hosts"},
		"upgrade without a host":     {command, `{"action":"upgrade"}`, "host"},
		"upgrade with hosts":         {command, `{"action":"upgrade","hosts":["h01"]}`, "belong to prepare"},
		"unknown member":             {command, `{"action":"upgrade","host":"h01","force":true}`, "force"},
		"unknown member of a reply":  {reply, `{"action":"upgrade","result":"done","more":1}`, "more"},
		"two objects":                {reply, `{"action":"upgrade","result":"done"}{}`, "more follows"},
		"nested result":              {reply, `{"action":"upgrade","result":{"ok":true}}`, "result"},
		"no result":                  {reply, `{"action":"upgrade"}`, "result is empty"},
		"reply of unknown action":    {reply, `{"action":"","result":"done"}`, "action"},
		"unknown event":              {event, `{"event":"rested"}`, "rested"},
		"opened without end":         {event, `{"event":"opened","members":["h01"]}`, "not-after"},
		"opened without hosts":       {event, `{"event":"opened","not-after":"2026-11-21T04:00:00Z"}`, "members: hosts is empty"},
		"opened with a strange host": {event, `{"event":"opened","members":["a/b"],"not-after":"2026-11-21T04:00:00Z"}`, "a/b"},
		"finished without result":    {event, `{"event":"finished"}`, "result"},
		"nested version":             {versions, `{"kernel":{"major":6}}`, `"kernel"`},
		"versions that are null":     {versions, `null`, "not an object"},
		"alive without application":  {alive, `{"agent-version":"1.0"}`, `application "" is no name`},
		"application in capitals":    {alive, `{"application":"Appliance"}`, `"Appliance"`},
		"application with a blank":   {alive, `{"application":"a b"}`, `"a b"`},
		"application ends with -":    {alive, `{"application":"a-"}`, `"a-"`},
		"application of 64 bytes":    {alive, `{"application":"` + strings.Repeat("a", 64) + `"}`, "at most 63"},
		"versions in a list":         {versions, `["kernel"]`, "cannot read versions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.decode([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v and does not say %q", err, c.want)
			}
		})
	}
}

// TestMembersOfANewerVersion checks that a body of our own with a member that this
// version does not know is read: whoever adds a member that must not be ignored
// raises the number of the format, or of the protocol (package format).
func TestMembersOfANewerVersion(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		body   []byte
		decode func([]byte) ([]byte, error)
	}{
		"event": {EncodeEvent(Opened{Members: []string{"h01"}, Rollout: rollout.Default(1), NotAfter: at}), func(body []byte) ([]byte, error) {
			e, err := DecodeEvent(body)
			return EncodeEvent(e), err
		}},
		"alive":    {Alive{Application: "app"}.Encode(), again(DecodeAlive)},
		"progress": {Progress{Run: 1}.Encode(), again(DecodeProgress)},
		"task":     {Task{Run: 1, Kind: Drain, Host: "h01"}.Encode(), again(DecodeTask)},
		"outcome":  {Outcome{Run: 1, Kind: Drain, Host: "h01"}.Encode(), again(DecodeOutcome)},
	} {
		more := append(bytes.TrimSuffix(bytes.Clone(c.body), []byte("}")), `,"of-a-newer-version":[{"a":1}]}`...)
		if got, err := c.decode(more); err != nil || !bytes.Equal(got, c.body) {
			t.Errorf("%s: %s is read as %s, %v", name, more, got, err)
		}
	}
}

// again returns what reads a body and writes it anew.
func again[T interface{ Encode() []byte }](decode func([]byte) (T, error)) func([]byte) ([]byte, error) {
	return func(body []byte) ([]byte, error) {
		value, err := decode(body)
		return value.Encode(), err
	}
}

// TestRoundTrip checks that what is written is read as the same.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	host := rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?`)
	rapid.Check(t, func(rt *rapid.T) {
		prepare := Command{
			Action: Prepare, Hosts: rapid.SliceOfN(host, 1, 5).Draw(rt, "hosts"),
			NotAfter: time.Unix(rapid.Int64Range(0, 4e9).Draw(rt, "end"), 0).UTC(),
		}
		upgrade := Command{Action: Upgrade, Host: host.Draw(rt, "host")}
		for _, c := range []Command{prepare, upgrade} {
			if got, err := DecodeCommand(c.Encode()); err != nil || !reflect.DeepEqual(got, c) {
				rt.Fatalf("%+v becomes %+v, %v", c, got, err)
			}
		}
		text := rapid.String().Draw(rt, "text")
		clean := CleanText(text)
		if len(clean) > MaxText || !utf8.ValidString(clean) || CleanText(clean) != clean {
			rt.Fatalf("%q becomes %q", text, clean)
		}
	})
}

// FuzzBodies checks that no body makes a decoder panic, and that what is read
// as well-formed is written as well-formed.
func FuzzBodies(f *testing.F) {
	f.Add([]byte(`{"action":"prepare","hosts":["h01"],"not-after":"2026-11-21T04:00:00Z"}`))
	f.Add([]byte(`{"action":"upgrade","result":"reboot-required"}`))
	f.Add([]byte(`{"event":"opened","members":["h01"],"not-after":"2026-11-21T04:00:00Z"}`))
	f.Add([]byte(`{"event":"opened","environment":"basel","members":["h01"],"roster-as-of":7,"not-after":"2026-11-21T04:00:00Z"}`))
	f.Add([]byte(`{"event":"missed","environment":"basel","window":"2026-11-21T04:00:00Z","window-end":"2026-11-21T05:00:00Z"}`))
	f.Add([]byte(`{"event":"carried","environment":"basel","run":41,"roster":[{"host":"h01","since":"2026-11-21T04:00:00Z","owes":{"look":true}}]}`))
	f.Add([]byte(`{"kernel":"6.1"}`))
	f.Add([]byte("A=1\n\nB=x=y\n"))
	f.Add([]byte(`{"application":"a","agent-version":"1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if c, err := DecodeCommand(body); err == nil {
			if again, err := DecodeCommand(c.Encode()); err != nil || !reflect.DeepEqual(again.Hosts, c.Hosts) || again.Host != c.Host {
				t.Errorf("%s becomes %s: %v", body, c.Encode(), err)
			}
		}
		if r, err := DecodeReply(body); err == nil && len(r.Result.String()) > MaxText {
			t.Errorf("a result of %d bytes is let through", len(r.Result.String()))
		}
		if v, err := DecodeVersions(body); err == nil {
			if !bytes.Equal(EncodeVersions(v), EncodeVersions(v)) {
				t.Error("equal versions have unequal bodies")
			}
		}
		if p, err := DecodePlan(body); err == nil {
			if again, err := DecodePlan(EncodePlan(p)); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("%s becomes %s: %v", body, EncodePlan(p), err)
			}
		}
		_, _ = DecodeEvent(body)
		_, _ = DecodeAlive(body)
		_, _ = DecodeProgress(body)
		_, _ = DecodeTask(body)
		_, _ = DecodeOutcome(body)
		if values, err := ParseOutputs(body, []string{"A", "B"}); err == nil && (len(values) != 2 || len(values["A"])+len(values["B"]) > len(body)) {
			t.Errorf("%q becomes %q", body, values)
		}
	})
}

// TestAlive checks that a worker may have any name that a configuration can
// list, and that its version cannot be long or spoil a terminal.
func TestAlive(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "7", "os-upgrade-simulated", strings.Repeat("a", names.MaxLength)} {
		got, err := DecodeAlive(Alive{Application: name, AgentVersion: "\x1b" + strings.Repeat("1\u00e5", maxVersion)}.Encode())
		if err != nil || got.Application != name || len(got.AgentVersion) > maxVersion || !strings.HasPrefix(got.AgentVersion, "1\u00e51") || !utf8.ValidString(got.AgentVersion) {
			t.Errorf("%s becomes %+v, %v", name, got, err)
		}
	}
}

// TestResults checks that a result is what it was after its way over the wire, and what text a
// site reads that knows the body alone. A host cannot claim an outcome by what it prints.
func TestResults(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("å", MaxText)
	for name, c := range map[string]struct {
		result Result
		body   string
	}{
		"done":                             {Result{Outcome: Done}, "done"},
		"done, with nothing to change":     {Result{Outcome: Done, UpToDate: true}, "done"},
		"a reboot is required":             {Result{Outcome: RebootRequired}, "reboot-required"},
		"failed":                           {NotDone(Failed, Space, "no space left"), "no space left"},
		"failed, and prints rolled back":   {NotDone(Failed, "", "half installed; rolled back"), "half installed; rolled back"},
		"failed, and prints a known loss":  {NotDone(Failed, "", "the plan of this run is lost"), "the plan of this run is lost"},
		"rolled back":                      {NotDone(RolledBack, Verify, "no web"), "no web; rolled back"},
		"rolled back, and printed so":      {NotDone(RolledBack, "", "no web; rolled back"), "no web; rolled back; rolled back"},
		"unknown":                          {NotDone(Unknown, "", "no journal"), "no journal"},
		"unknown, and printed rolled back": {NotDone(Unknown, "", "who knows; rolled back"), "who knows; rolled back"},
	} {
		record := Record{Kind: ReplyRecord, Action: Upgrade, Outcome: OutcomeBeside(string(c.result.Outcome.Beside())), Class: c.result.Class, UpToDate: c.result.UpToDate, Body: Reply{Action: Upgrade, Result: c.result}.Encode()}
		if want := `{"action":"upgrade","result":"` + c.body + `"}`; string(record.Body) != want {
			t.Errorf("%s: the body is %s, not %s", name, record.Body, want)
		}
		if got := record.Decode(); got.Err != nil || got.Reply.Result != c.result || got.Reply.Result.String() != c.body {
			t.Errorf("%s: %+v is read as %+v, %v", name, c.result, got.Reply, got.Err)
		}
	}
	for text, want := range map[string]string{"done": "failed: done", "reboot-required": "failed: reboot-required", "": "failed: "} {
		if got := NotDone(Failed, "", text).String(); got != want {
			t.Errorf("a failure that prints %q is %q", text, got)
		}
	}
	if got := NotDone(RolledBack, "", long).String(); len(got) > MaxText || !strings.HasSuffix(got, "…; rolled back") {
		t.Errorf("a long result has %d bytes and ends %q", len(got), got[len(got)-20:])
	}
	if got := OutcomeBeside("half-done"); got != Unknown {
		t.Errorf("an outcome of a newer worker is read as %q", got)
	}
}

// TestPrepareOfAnEnvironment checks that a prepare whose environment is not a name on the log
// is not read.
func TestPrepareOfAnEnvironment(t *testing.T) {
	t.Parallel()
	body := Command{Action: Prepare, Hosts: []string{"h01"}, NotAfter: time.Now()}.Encode()
	for environment, want := range map[string]string{
		"": "", "basel": "", "Basel": `cannot read prepare: environment "Basel" is not a name`, "default": "cannot read prepare: environment is \"default\": on the log the default environment has no name",
	} {
		d := Record{Kind: CommandAll, Environment: environment, Body: body}.Decode()
		if read := d.Command != nil && d.Err == nil; read != (want == "") || !read && !strings.HasPrefix(d.Err.Error(), want) {
			t.Errorf("a prepare of %q is read as %+v, %v", environment, d.Command, d.Err)
		}
	}
}
