package v1

import (
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

func drawOSUpgrade(t *rapid.T) OSUpgrade {
	name := rapid.OneOf(rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?`), rapid.SampledFrom([]string{"y", "no", "on", "null", "0", "1e3", "0x1f"}))
	entry := rapid.Custom(func(t *rapid.T) MaintenanceWindow {
		return MaintenanceWindow{
			DaysOfWeek: window.Days(rapid.Uint8Range(1, 127).Draw(t, "days")).String(),
			StartTime:  rapid.StringMatching(`([01][0-9]|2[0-3]):[0-5][0-9]`).Draw(t, "start"),
			Timezone:   rapid.SampledFrom([]string{"", "site-local", "UTC", "Europe/Stockholm", "Etc/GMT+5"}).Draw(t, "zone"),
			Duration:   rapid.SampledFrom([]string{"1m", "60m", "1h", "4h", "1d4h18s", "7d"}).Draw(t, "duration"),
		}
	})
	o := OSUpgrade{MaintenanceWindows: rapid.SliceOfN(entry, 0, 5).Draw(t, "windows")}
	for _, n := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID).Draw(t, "names") {
		o.WorkerApplications = append(o.WorkerApplications, WorkerApplication{Name: n})
	}
	return o
}

func TestJSONAndYAMLOfTheSameContentDecodeEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := drawOSUpgrade(t)
		wrong := o.Validate()
		for _, accept := range []string{inJSON, inYAML} {
			contentType, body, err := Encode(accept, o)
			if err != nil || contentType != accept {
				t.Fatal(contentType, err)
			}
			got, err := DecodeOSUpgrade(contentType, body)
			if len(wrong) == 0 && (err != nil || !reflect.DeepEqual(got, o)) {
				t.Fatalf("%s\nread as %+v, %v; want %+v", body, got, err, o)
			}
			if len(wrong) > 0 && errText(err) != wrong.Error() {
				t.Fatalf("%s\ngave %v; want %v", body, err, wrong)
			}
		}
	})
}

// holder has texts under keys of any name.
type holder struct {
	Texts map[string]string `json:"texts"`
}

func TestEveryTextSurvivesItsYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-?:,\[\]{}#&*!|>'"%@ a\n\t~<=0-9.yYnN]{0,6}`),
			rapid.StringMatching(`[-a:# ]{1,3}(\n[-a:#|> ]{1,3}){2,4}\n{0,2}`))
		want := rapid.MapOf(texts, texts).Draw(t, "texts")
		contentType, body, err := Encode("text/yaml", holder{want})
		if err != nil {
			t.Fatal(err)
		}
		d, err := document.Parse(contentType, body)
		if err != nil {
			t.Fatalf("%s\n%v", body, err)
		}
		var got holder
		if d.Root().Fill(&got); d.Err() != nil || !maps.Equal(got.Texts, want) {
			t.Fatalf("%s\nread as %q, %v; want %q", body, got, d.Err(), want)
		}
	})
}

func TestCanonicalMeansTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := drawOSUpgrade(t)
		canonical := o.Canonical()
		for i, entry := range o.MaintenanceWindows {
			a, wrong := entry.parse()
			b, wrongToo := canonical.MaintenanceWindows[i].parse()
			if len(wrong) > 0 || len(wrongToo) > 0 || a != b || spell(b) != canonical.MaintenanceWindows[i] {
				t.Fatalf("%+v became %+v", entry, canonical.MaintenanceWindows[i])
			}
		}
	})
}
