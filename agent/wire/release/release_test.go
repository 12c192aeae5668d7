package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

var saturday = time.Date(2026, 11, 28, 17, 0, 0, 0, time.UTC)

// read returns the release of a JSON text, which must be one.
func read(t *testing.T, text string) Release {
	t.Helper()
	d, err := document.Parse(document.JSON, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var r Release
	d.Root().Fill(&r)
	if err := d.Err(r.Validate()...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestText(t *testing.T) {
	t.Parallel()
	r := read(t, `{"description": "November", "version": "2.1.0", "scheme": "semver", "from": ["= 1.9.4", ">= 2.0, < 2.1"],
		"packages": {"as-of": "2026-11-21T01:00:00+01:00", "except": ["linux-*", "grub-*"]}, "withdrawn": {"reason": "loses routes"}}`)
	const want = `{"component":"os","version":"2.1.0","scheme":"semver","from":["= 1.9.4","\u003e= 2.0, \u003c 2.1"],` +
		`"packages":{"select":"all","as-of":"2026-11-21T00:00:00Z","except":["grub-*","linux-*"]}}`
	if got := string(r.Text()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := r.Digest(), "sha256:"; !strings.HasPrefix(got, want) || len(got) != len(want)+64 {
		t.Errorf("digest %s", got)
	}
	if got, want := string(read(t, `{"data": {"b": 1.50, "a": [null, "<"]}}`).Text()), `{"component":"os","scheme":"opaque","data":{"a":[null,"\u003c"],"b":1.50}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                `packages: it is missing; give packages, images or data`,
		`{"packages": {}, "data": 1}`:       `data: packages is given, too; give only one of packages, images and data`,
		`{"component": "agent", "data": 1}`: `component: "agent" is reserved; use os`,
		`{"data": null}`:                    `data: null is not a value; give one or leave it out; packages: it is missing; give packages, images or data`,
		`{"scheme": "semvar", "data": 1}`:   `scheme: "semvar" is invalid; use semver, deb, rpm or opaque; did you mean semver?`,
		`{"scheme": "semver", "version": "two", "data": 1}`:                              `version: "two" is not a version of scheme semver; use one such as 2.1.0, or another scheme`,
		`{"version": "2 1", "data": 1}`:                                                  `version: "2 1" is not a version; use letters, digits and signs, without spaces, commas and comparisons`,
		`{"from": [">= 2.0"], "data": 1}`:                                                `from[0]: ">= 2.0" compares versions with >=, and those of scheme opaque have no order; use = or another scheme`,
		`{"scheme": "deb", "from": ["2", "=> 1"], "data": 1}`:                            `from[1]: "=> 1" is not a range of versions of scheme deb; use >=, <=, !=, >, <, = and a version, such as ">= 6.12, < 6.13"`,
		`{"scheme": "deb", "from": ["2", "2"], "data": 1}`:                               `from[1]: "2" is there twice; give each range once`,
		`{"requires": {"kernel": "6 1"}, "data": 1}`:                                     `requires.kernel: "6 1" is not a range of versions of scheme deb; use >=, <=, !=, >, <, = and a version, such as ">= 6.12, < 6.13"`,
		`{"installs": {"kernel": ""}, "data": 1}`:                                        `installs.kernel: "" is not a version; use 1 to 200 characters that can be printed`,
		`{"downgrade": true, "version": "2", "data": 1}`:                                 `downgrade: without a version and a scheme that orders versions nothing is a downgrade; give both, or leave it out`,
		`{"packages": {"select": "some"}}`:                                               `packages.select: "some" is invalid; use all, security or listed`,
		`{"packages": {"select": "listed"}}`:                                             `packages.only: it is missing; name the packages that select listed upgrades`,
		`{"packages": {"only": ["bash=5"]}}`:                                             `packages.only[0]: "bash=5" has a version; use select listed and only for exact versions`,
		`{"packages": {"select": "listed", "only": ["bash="]}}`:                          `packages.only[0]: "bash=" has no version after =; use name=version or the name alone`,
		`{"packages": {"except": ["["]}}`:                                                `packages.except[0]: "[" is not a pattern of the names of packages; use one such as "linux-image-*"`,
		`{"packages": {"except": ["a", "a"]}}`:                                           `packages.except[1]: "a" is there twice; give each pattern once`,
		`{"packages": {"as-of": "1999-01-01T00:00:00Z"}}`:                                `packages.as-of: "1999-01-01T00:00:00Z" is before any repository; use a time since 2000`,
		`{"packages": {"distribution": "trixie", "select": "security"}}`:                 `packages.distribution: "trixie" upgrades all packages; leave select and only out`,
		`{"images": [{"platform": "linux/amd46", "url": "https://x/y"}]}`:                `images[0].platform: "linux/amd46" is invalid; use linux/386, linux/amd64, linux/arm, linux/arm64, linux/ppc64le, linux/riscv64 or linux/s390x; did you mean linux/amd64?`,
		`{"images": [{}]}`:                                                               `images[0].url: it is missing; say where the image is`,
		`{"images": [{"url": "--transport=dir"}]}`:                                       `images[0].url: "--transport=dir" is not the place of an image; use up to 2048 characters, without spaces and without - at the beginning`,
		`{"images": [{"url": "https://me:secret@x/y"}]}`:                                 `images[0].url: it has a user or a password; whoever reads the configuration would read it, too`,
		`{"images": [{"url": "a", "sha256": "12"}]}`:                                     `images[0].sha256: "12" is not a SHA-256 sum; use 64 of 0-9 and a-f`,
		`{"images": [{"url": "a", "compatible": "x"}, {"url": "b", "compatible": "x"}]}`: `images[1].compatible: "x" is that of another image of the same platform; give one image for each kind of host`,
		`{"data": 1, "withdrawn": {"reason": " "}}`:                                      `withdrawn.reason: it is missing; say why the release must not be installed any more`,
	} {
		d, err := document.Parse(document.JSON, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var r Release
		d.Root().Fill(&r)
		if err := d.Err(r.Validate()...); err == nil || err.Error() != want {
			t.Errorf("%.100s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestFuture(t *testing.T) {
	t.Parallel()
	r := Release{Packages: &Packages{AsOf: saturday}}
	if found := r.Future(saturday); len(found) > 0 {
		t.Errorf("now is the future: %v", found)
	}
	if found := r.Future(saturday.Add(-time.Second)); len(found) != 1 || found[0].Field != "packages.as-of" {
		t.Errorf("a second later: %v", found)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	const rest = len(`{"component":"os","scheme":"opaque","data":""}`)
	for size, want := range map[int]string{MaxText: "", MaxText + 1: "the release has 65537 bytes; use at most 65536"} {
		r := Release{Data: json.RawMessage(`"` + strings.Repeat("x", size-rest) + `"`)}
		if got := r.TooLarge(); got != want {
			t.Errorf("%d bytes: got %q, want %q", size, got, want)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	was := read(t, `{"version": "1", "installs": {"kernel": "6"}, "packages": {"only": ["a", "b"], "as-of": "2026-11-21T00:00:00Z"}}`)
	for text, want := range map[string]string{
		`{"version": "1", "installs": {"kernel": "6"}, "packages": {"only": ["b", "a"], "select": "all", "as-of": "2026-11-21T01:00:00+01:00"}, "scheme": "opaque", "description": "new", "withdrawn": {"reason": "x"}}`: ``,
		`{"version": "2", "installs": {"kernel": "6"}, "packages": {"only": ["a", "b"], "as-of": "2026-11-21T00:00:00Z"}}`:                                                                                               `version`,
		`{"version": "1", "installs": {"kernel": "7"}, "packages": {"only": ["a", "b"], "as-of": "2026-11-21T00:00:00Z"}}`:                                                                                               `installs.kernel`,
		`{"version": "1", "packages": {"only": ["a", "b"], "as-of": "2026-11-21T00:00:00Z"}}`:                                                                                                                            `installs`,
		`{"version": "1", "installs": {"kernel": "6"}, "packages": {"only": ["a", "b"], "as-of": "2026-11-22T00:00:00Z"}}`:                                                                                               `packages.as-of`,
		`{"version": "1", "installs": {"kernel": "6"}, "data": 1}`:                                                                                                                                                       `data`,
	} {
		if got := Changed(was, read(t, text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// releases draws releases that are right.
func releases() *rapid.Generator[Release] {
	word := rapid.StringMatching(`[a-z]{1,4}`)
	return rapid.Custom(func(t *rapid.T) Release {
		r := Release{
			Description: rapid.SampledFrom([]string{"", "for shops"}).Draw(t, "description"),
			Component:   rapid.SampledFrom([]string{"", OS}).Draw(t, "component"),
			Version:     rapid.SampledFrom([]string{"", "1.0.0", "2.1.0", "2.1.0-rc1"}).Draw(t, "version"),
			Scheme:      rapid.SampledFrom([]Scheme{"", Semver, Deb, RPM, Opaque}).Draw(t, "scheme"),
			From:        rapid.SliceOfDistinct(rapid.SampledFrom([]string{"1.0.0", "= 2.0.0", "!= 2.1.0"}), rapid.ID).Draw(t, "from"),
			Requires:    rapid.MapOf(word, rapid.SampledFrom([]string{">= 1.0, < 2", "3"})).Draw(t, "requires"),
			Installs:    rapid.MapOf(word, word).Draw(t, "installs"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "content") {
		case 0:
			r.Packages = &Packages{
				Select: rapid.SampledFrom([]string{"", All, Security}).Draw(t, "select"),
				Only:   rapid.SliceOfDistinct(word, rapid.ID).Draw(t, "only"),
				Except: rapid.SliceOfDistinct(word, rapid.ID).Draw(t, "except"),
			}
			if rapid.Bool().Draw(t, "dated") {
				zone := time.FixedZone("", 3600*rapid.IntRange(-2, 2).Draw(t, "zone"))
				r.Packages.AsOf = saturday.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour).In(zone)
			}
		case 1:
			r.Images = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Image {
				return Image{
					Platform: rapid.SampledFrom(append(Platforms, "")).Draw(t, "platform"), Compatible: rapid.SampledFrom([]string{"", "box <2>", "é"}).Draw(t, "compatible"),
					URL: "https://example.com/" + word.Draw(t, "url"), Size: rapid.IntRange(0, 1<<40).Draw(t, "size"),
				}
			}), 1, 3, func(i Image) string { return i.Platform + " " + i.Compatible }).Draw(t, "images")
		default:
			r.Data = json.RawMessage(rapid.SampledFrom([]string{`1`, `{"b": 1.0, "a": ["<&>", "\u2028", null]}`, `{"a":["<&>","\u2028",null],"b":1.0}`, `"x"`}).Draw(t, "data"))
		}
		return r
	})
}

// TestTextIsOne checks that the text of a release is read as the same release, has its digest, stays the
// same bytes in the JSON of a record, and differs from another exactly if a member differs.
func TestTextIsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := releases().Draw(t, "release")
		if found := r.Validate(); len(found) > 0 {
			t.Fatalf("%+v: %v", r, found)
		}
		checkText(t, r)
		again := r
		again.Description, again.Withdrawn = "another", &Withdrawn{Reason: "bad", At: saturday, By: "ann"}
		again.From = slices.Clone(again.From)
		slices.Reverse(again.From)
		if again.Digest() != r.Digest() || Changed(r, again) != "" {
			t.Errorf("%s differs from %s in %q", again.Text(), r.Text(), Changed(r, again))
		}
		other := releases().Draw(t, "other")
		if same := other.Digest() == r.Digest(); same != (Changed(r, other) == "") {
			t.Errorf("same digest: %v, changed: %q", same, Changed(r, other))
		}
	})
}

// checkText checks what holds for the text of each release that is right.
func checkText(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, r Release,
) {
	t.Helper()
	pin := r.Pin("nov")
	for _, escape := range []bool{true, false} {
		var record bytes.Buffer
		encoder := json.NewEncoder(&record)
		encoder.SetEscapeHTML(escape)
		if err := encoder.Encode(map[string]any{"release": pin}); err != nil {
			t.Fatal(err)
		}
		var back struct{ Release Pin }
		if err := json.Unmarshal(record.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		pinned, err := back.Release.Release()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(pinned.Text(), r.Text()) || pinned.Digest() != r.Digest() {
			t.Fatalf("%s became %s", r.Text(), pinned.Text())
		}
		if c := pinned.Canonical(); !reflect.DeepEqual(c, c.Canonical()) {
			t.Fatalf("%+v has another canonical form again", c)
		}
	}
	changed := bytes.Replace(pin.Text, []byte(`"os"`), []byte(`"so"`), 1)
	if _, err := Decode(changed, pin.Digest); err == nil {
		t.Fatal("another text is taken for the one that is pinned")
	}
}

func TestDecode_refuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"component":"os","data":1,"steps":[]}`: `steps: unknown key`,
		`{"component":"os"}`:                     `packages: it is missing`,
		`[]`:                                     `is not an object`,
	} {
		_, err := Decode([]byte(text), digestOf([]byte(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if _, err := (Pin{Name: "nov", Digest: "sha256:00", Text: json.RawMessage(`{}`)}).Release(); err == nil || !strings.HasPrefix(err.Error(), "release nov: its text has digest sha256:") {
		t.Errorf("got %v", err)
	}
}

// FuzzDecode: a text is read as a release that is right and has one text, or refused.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"component":"os","version":"2.1.0","scheme":"semver","from":["= 1.9.4",">= 2.0, < 2.1"],"packages":{"select":"all","as-of":"2026-11-21T00:00:00Z","except":["linux-*"]}}`,
		`{"component":"os","scheme":"opaque","images":[{"platform":"linux/arm64","compatible":"box","url":"https://example.com/a.raucb","sha256":"","size":12}]}`,
		`{"data":{"b":[1.50,null],"a":"<"},"requires":{"kernel":">= 6"},"installs":{"kernel":"6.1"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Decode(text, digestOf(text))
		if err != nil {
			return
		}
		if found := r.Validate(); len(found) > 0 {
			t.Fatalf("%s: %v", text, found)
		}
		if len(r.Text()) > MaxText {
			t.Fatalf("%d bytes", len(r.Text()))
		}
		checkText(t, r)
	})
}

func TestFollowed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		follow     Follow
		name, text string
	}{
		{Follow{}, "all", `{"component":"os","scheme":"opaque","packages":{"select":"all"}}`},
		{Follow{Select: Security, Age: "0s"}, "security", `{"component":"os","scheme":"opaque","packages":{"select":"security"}}`},
		{Follow{Age: "36h"}, "all-20261127", `{"component":"os","scheme":"opaque","packages":{"select":"all","as-of":"2026-11-27T00:00:00Z"}}`},
		{Follow{Select: Security, Age: "7d"}, "security-20261121", `{"component":"os","scheme":"opaque","packages":{"select":"security","as-of":"2026-11-21T00:00:00Z"}}`},
	} {
		name, r, until := Followed(row.follow, saturday.Add(12*time.Second).In(time.FixedZone("", 3600)))
		if name != row.name || string(r.Text()) != row.text || len(r.Validate()) > 0 || !names.Valid(name) {
			t.Errorf("%+v: got %s %s, %v", row.follow, name, r.Text(), r.Validate())
		}
		if until.IsZero() != r.Packages.AsOf.IsZero() {
			t.Fatalf("%+v: it stays so until %s", row.follow, until)
		}
		if until.IsZero() {
			continue
		}
		before, _, _ := Followed(row.follow, until.Add(-1))
		after, _, _ := Followed(row.follow, until)
		if before != name || after == name {
			t.Errorf("%+v: it stays so until %s, but is %s just before, and %s then", row.follow, until, before, after)
		}
	}
}

func TestOfEnvironment(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		of   Target
		want string
	}{
		{Target{}, ""},
		{Target{Releases: map[string]string{OS: "nov"}}, ""},
		{Target{Follow: &Follow{Select: Security, Age: "7d"}}, ""},
		{Target{Releases: map[string]string{OS: "Nov"}}, `releases.os: "Nov" is not the name of a release; ` + names.Form},
		{Target{Releases: map[string]string{"agent": "nov"}}, `releases.agent: "nov" is for a component that is reserved; use os`},
		{Target{Releases: map[string]string{OS: "nov"}, Follow: &Follow{}}, `follow: releases are named, too; give only one of them`},
		{Target{Follow: &Follow{Select: Listed}}, `follow.select: "listed" is invalid; use all or security`},
		{Target{Follow: &Follow{Age: "366d"}}, `follow.age: "366d" is too long; use 0s to 365d`},
	} {
		if got := row.of.Validate(); fmt.Sprint(errors.Join(document.Err(got...))) != fmt.Sprint(errors.Join(errorOf(row.want))) {
			t.Errorf("%+v: got %v, want %s", row.of, got, row.want)
		}
	}
	if got := (Target{Follow: &Follow{Age: "168h"}}).Canonical().Follow.Age; got != "7d" {
		t.Errorf("168h is written %s", got)
	}
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
