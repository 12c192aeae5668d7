package report

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestTable checks what the table of kinds must not get wrong: names and places in the store are
// each of one kind, a kind of hosts has a bucket and is kept as it is sent, and a report that is
// sent again and again is bounded.
func TestTable(t *testing.T) {
	t.Parallel()
	names, places := map[string]bool{}, map[string]bool{}
	once := func(in map[string]bool, name string) {
		if name == "" || in[name] || strings.ContainsAny(name, ".*> ") {
			t.Errorf("%q is empty, is used twice, or is no token of a subject", name)
		}
		in[name] = true
	}
	for _, k := range Kinds {
		once(names, k.Name)
		switch {
		case !k.OfRun:
			once(places, k.Bucket)
		case k.Parts == nil:
			once(places, k.Name)
		}
		for _, part := range k.Parts {
			once(places, part)
		}
		if k.Check == nil || k.Format.Newest == 0 || k.MaxBody == 0 || k.MaxBody > message.MaxVersionsBody {
			t.Errorf("%s has no check or no format, or is larger than a call of a host", k.Name)
		}
		if k.OfRun && (k.Bucket != "" || k.Again != 0 || k.Changes != nil || k.Summary != nil || k.Show != nil) || !k.OfRun && (k.Parts != nil || k.MayBeCut) {
			t.Errorf("%s has a field that its kind has no use for", k.Name)
		}
		if k.Again != 0 && k.MaxDay < k.MaxBody {
			t.Errorf("a day of %s has no room for one report", k.Name)
		}
		if Named(k.Name) != k {
			t.Errorf("%s is not found by its name", k.Name)
		}
	}
}

// reports are a report of each kind.
func reports(t testing.TB) []Report {
	t.Helper()
	plan, err := message.PackPlan(message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "1", To: "2"}}})
	if err != nil {
		t.Fatal(err)
	}
	return []Report{
		Versions.Of([]byte(`{"kernel":"6.1"}`)), Offer.Of(plan), Inventory.Of([]byte(`{"format":1,"memory-bytes":7}`)),
		{ID: ID{Kind: Plan, Run: 7}, Body: plan},
		{ID: ID{Kind: Output, Run: 7, Part: "verify"}, Body: []byte("all is well\n")},
		{ID: ID{Kind: Output, Run: 1<<64 - 1, Part: "upgrade"}, Cut: true, Body: []byte("the end\n")},
	}
}

// TestEveryKind checks that a report of each kind comes over the wire and out of a store as it was
// sent.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	seen := map[*Kind]bool{}
	for _, r := range reports(t) {
		seen[r.Kind] = true
		got, err := Parse(r.Words(), r.Body)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s is read as %+v, %v", r.ID, got, err)
		}
		e, err := r.Entry(Kept{})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := r.Kind.Read(e, at)
		if err != nil || kept.Cut != r.Cut || !bytes.Equal(kept.Body, r.Body) || !kept.At.Equal(at) || kept.Told() != (Told{Digest: Digest(r.Body), At: at}) {
			t.Errorf("%s is kept as %+v, %v", r.ID, kept, err)
		}
		if again := r.Repeats(kept); again != (r.Kind.Again == 0) {
			t.Errorf("%s is written again: %v", r.ID, !again)
		}
		if e.Format != "" { // Others have it in what TestFormats of the store holds.
			e.Format = "9"
			if _, err := r.Kind.Read(e, at); !format.IsUnsupported(err) {
				t.Errorf("%s of a newer version is read with %v", r.ID, err)
			}
		}
	}
	for _, k := range Kinds {
		if !seen[k] {
			t.Errorf("there is no example of %s", k.Name)
		}
	}
}

// TestParse checks which reports are refused.
func TestParse(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"nonsense":               "there is no report",
		"versions 7":             "there is no report",
		"versions cut":           "there is no report",
		"plan":                   "there is no report",
		"plan x":                 "is no run",
		"plan 7 cut":             "there is no report",
		"output 7":               "there is no report",
		"output 7 versions":      "is no action",
		"output 7 upgrade whole": "there is no report",
		"output 7 upgrade cut 1": "there is no report",
		"output -1 upgrade":      "is no run",
	} {
		if _, err := Parse(strings.Fields(words), []byte("{}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read with %v, not %q", words, err, want)
		}
	}
	for _, k := range Kinds {
		words := Report{ID: ID{Kind: k, Run: 7, Part: slices.Concat(k.Parts, []string{""})[0]}}.Words()
		if _, err := Parse(words, bytes.Repeat([]byte(" "), k.MaxBody+1)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at most %d bytes", k.MaxBody)) {
			t.Errorf("a %s that is too large is read with %v", k.Name, err)
		}
	}
}

// FuzzParse checks that whatever a host sends is refused, or can be kept and read again.
func FuzzParse(f *testing.F) {
	for _, r := range reports(f) {
		f.Add(strings.Join(r.Words(), "."), r.Body)
	}
	f.Fuzz(func(t *testing.T, words string, body []byte) {
		r, err := Parse(strings.Split(words, "."), body)
		if err != nil {
			return
		}
		if got := strings.Join(r.Words(), "."); r.Run < 10 && !r.Kind.OfRun && got != words {
			t.Errorf("%q is read as %q", words, got)
		}
		e, err := r.Entry(Kept{})
		if err != nil {
			t.Fatalf("%s cannot be kept: %v", r.ID, err)
		}
		kept, err := r.Kind.Read(e, time.Time{})
		if err != nil || r.Kind.Changes == nil && !bytes.Equal(kept.Body, r.Body) {
			t.Errorf("%s is kept as %q, %v", r.ID, kept.Body, err)
		}
	})
}
