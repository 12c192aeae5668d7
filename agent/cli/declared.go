package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// files are the texts that apply and validate read.
type files struct {
	File []string `help:"File, folder of .yaml, .yml and .json files, or - for standard input; repeatable. An .ics file is a calendar." short:"f" required:"" placeholder:"FILE"`
	Name string   `help:"Name under which the .ics file is written as a calendar." placeholder:"NAME"`
	Kind string   `help:"Kind of calendar to write the .ics file as: freeze or allow." default:"freeze" enum:"freeze,allow"`
}

// maxDeclared bounds a file, in bytes. A calendar alone may have 1 MiB.
const maxDeclared = 16 << 20

// read returns what the files declare.
func (f *files) read(stdin io.Reader) (intent.Intent, error) {
	var sources []intent.Source
	for _, name := range f.File {
		found, err := readSources(name, stdin)
		if err != nil {
			return intent.Intent{}, misused(err)
		}
		sources = append(sources, found...)
	}
	if err := f.nameCalendar(sources); err != nil {
		return intent.Intent{}, misused(err)
	}
	want, err := intent.Decode(sources...)
	switch {
	case err != nil:
		return want, misusedf("nothing was written; the input is invalid:\n%w", err)
	case len(want.Keys()) == 0:
		return want, misusedf("%s declares nothing; give at least one of config, rollout, calendars, environments, budgets, releases, policies, users, approles and webhooks", strings.Join(f.File, ", "))
	}
	return want, nil
}

// nameCalendar says of the iCalendar text among the sources which calendar it is.
func (f *files) nameCalendar(sources []intent.Source) error {
	var calendar *intent.Source
	for i := range sources {
		s := &sources[i]
		switch {
		case !isICalendar(*s):
		case f.Name == "":
			return fmt.Errorf("%s is a calendar; name it with --name", s.Name)
		case calendar != nil:
			return fmt.Errorf("%s and %s are both calendars, and --name is for one; apply one after the other, or name the files in a document with ics-file", calendar.Name, s.Name)
		default:
			s.Calendar, calendar = &intent.ICalendar{Name: f.Name, Kind: f.Kind}, s
		}
	}
	if f.Name != "" && calendar == nil {
		return fmt.Errorf("--name is for an .ics file, and %s is not one", strings.Join(f.File, ", "))
	}
	return nil
}

// isICalendar reports whether a text is a calendar, by the end of its name, or by its beginning
// on standard input.
func isICalendar(s intent.Source) bool {
	return strings.EqualFold(filepath.Ext(s.Name), ".ics") || s.Name == standardInput && bytes.HasPrefix(bytes.TrimLeft(s.Text, "\ufeff \r\n"), []byte("BEGIN:VCALENDAR"))
}

const standardInput = "standard input"

// readSources returns the texts of a file, of the files in a folder, or of
// standard input.
func readSources(name string, stdin io.Reader) ([]intent.Source, error) {
	if name == "-" {
		text, err := readText(standardInput, stdin)
		return []intent.Source{{Name: standardInput, Text: text, ReadFile: readFile, ReadSecret: readSecretFile}}, err
	}
	names := []string{name}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	if info.IsDir() {
		if names, err = listFolder(name); err != nil {
			return nil, err
		}
	}
	var sources []intent.Source
	for _, name := range names {
		text, err := readFile(name)
		if err != nil {
			return nil, err
		}
		besides := func(read func(string) ([]byte, error)) func(string) ([]byte, error) {
			return func(file string) ([]byte, error) {
				if !filepath.IsAbs(file) {
					file = filepath.Join(filepath.Dir(name), file)
				}
				return read(file)
			}
		}
		sources = append(sources, intent.Source{Name: name, Text: text, ReadFile: besides(readFile), ReadSecret: besides(readSecretFile)})
	}
	return sources, nil
}

// listFolder returns the files of a folder that apply reads, by name.
func listFolder(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("file: folder %s has no .yaml, .yml or .json file", dir)
	}
	return names, nil
}

// readSecretFile reads a file with a secret that a text names.
func readSecretFile(name string) ([]byte, error) { return readSecret("file", name) }

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	defer func() { _ = file.Close() }()
	return readText(name, file)
}

func readText(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDeclared+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	case len(text) > maxDeclared:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxDeclared)
	}
	return text, nil
}

// siteIntent is what a site has of a tenant's objects, as read at one time. What is
// written then names the revisions that were read.
type siteIntent struct {
	api    *client.Client
	tenant string
	has    intent.Intent
	etags  map[intent.Key]string
}

// readSiteIntent reads objects; those that do not exist are absent.
func readSiteIntent(ctx context.Context, api *client.Client, tenant string, keys []intent.Key) (*siteIntent, error) {
	d := &siteIntent{api: api, tenant: tenant, etags: map[intent.Key]string{}}
	for _, key := range keys {
		if err := d.read(ctx, key); err != nil && !client.Missing(err) {
			return nil, err
		}
	}
	return d, nil
}

// read reads an object; one that does not exist is an error.
func (d *siteIntent) read(ctx context.Context, key intent.Key) error {
	etag, err := kindOf(key.Kind).read(ctx, d, key.Name)
	if err == nil {
		d.etags[key] = etag
	}
	return err
}

// validate asks the site whether it would accept a change, and changes nothing. It returns
// what is to be warned of, for an object that stays as it is, too.
func (d *siteIntent) validate(ctx context.Context, s intent.ObjectChange, want intent.Intent) ([]v1.IntentWarning, error) {
	k := kindOf(s.Key.Kind)
	if s.Action == intent.Delete && s.Key.Kind == intent.Environment { // One that is in use is not deleted.
		return nil, k.removable(ctx, d, s.Key.Name, client.Precondition{IfMatch: d.etags[s.Key]})
	}
	if s.Action == intent.Delete || s.Action == intent.Keep && (!isWarnedOf(s.Key.Kind) || want.Deletions[s.Key]) {
		return nil, nil
	}
	checked, ok := d.checkable(want, s.Key)
	if !ok {
		return nil, nil
	}
	found, err := k.validate(ctx, d, checked, s.Key)
	found = withoutNew(found, want)
	if err == nil && s.Key.Kind == intent.Config && s.Action != intent.Keep {
		found = append(found, d.withoutWindows(ctx, want, time.Now())...)
	}
	return found, err
}

// isWarnedOf reports whether the site warns of what objects of a kind match.
func isWarnedOf(k intent.Kind) bool {
	switch k {
	case intent.Config, intent.Rollout, intent.Environment, intent.Budget:
		return true
	case intent.Calendar, intent.Policy, intent.User, intent.Approle, intent.Webhook:
	}
	return false
}

// withoutNew returns warnings but for those about calendars and environments that an environment
// names and that are written with it: the site does not have them yet.
func withoutNew(found []v1.IntentWarning, want intent.Intent) []v1.IntentWarning {
	return slices.DeleteFunc(found, func(w v1.IntentWarning) bool {
		e := want.Environments[keyOf(w).Name]
		if name, some := entryAt(w.Field, "calendars", e.Calendars); some {
			return want.Calendars[name].Kind == string(calendar.Allow)
		}
		if e.After == nil {
			return false
		}
		name, some := entryAt(w.Field, "after.environments", e.After.Environments)
		_, isNew := want.Environments[name]
		return some && isNew
	})
}

// entryAt returns the entry of a list that the path of a warning names.
func entryAt(path, list string, entries []string) (entry string, some bool) {
	var n int
	if _, err := fmt.Sscanf(path, list+"[%d]", &n); err != nil || n >= len(entries) {
		return "", false
	}
	return entries[n], true
}

// checkable returns what the site can check of an object before the policies and releases that it names
// and that are written first are there. It can check nothing of a user or an approle that has no other
// policies.
func (d *siteIntent) checkable(want intent.Intent, key intent.Key) (checked intent.Intent, ok bool) {
	isNew := func(name string) bool {
		_, declared := want.Policies[name]
		_, exists := d.etags[intent.Key{Kind: intent.Policy, Name: name}]
		return declared && !exists
	}
	withoutNewRelease := func(of release.Target) release.Target {
		_, declared := want.Releases[of.Named()]
		if _, exists := d.etags[intent.Key{Kind: intent.Release, Name: of.Named()}]; declared && !exists {
			of.Releases = nil
		}
		return of
	}
	switch key.Kind {
	case intent.Config:
		c := *want.Config
		c.Target = withoutNewRelease(c.Target)
		want.Config = &c
	case intent.Environment:
		e := want.Environments[key.Name]
		e.Target = withoutNewRelease(e.Target)
		want.Environments = map[string]v1.Environment{key.Name: e}
	case intent.User:
		u := want.Users[key.Name]
		u.TokenPolicies = slices.DeleteFunc(slices.Clone(u.TokenPolicies), isNew)
		want.Users = map[string]v1.User{key.Name: u}
		return want, len(u.TokenPolicies) > 0
	case intent.Approle:
		a := want.Approles[key.Name]
		a.TokenPolicies = slices.DeleteFunc(slices.Clone(a.TokenPolicies), isNew)
		want.Approles = map[string]v1.Approle{key.Name: a}
		return want, len(a.TokenPolicies) > 0
	case intent.Rollout, intent.Calendar, intent.Budget, intent.Release, intent.Policy, intent.Webhook:
	}
	return want, true
}

// validateAll asks about all changes. It returns what is to be warned of, and all that the site
// refuses.
func (d *siteIntent) validateAll(ctx context.Context, changes []intent.ObjectChange, want intent.Intent) ([]warning, error) {
	order, err := d.environmentsWith(ctx, want)
	if err != nil {
		return nil, err
	}
	found, refused := order.overlaps(ctx, d), order.cycles()
	for _, s := range changes {
		warnings, err := d.validate(ctx, s, order.checked(want, s.Key))
		found = append(found, warnings...)
		switch {
		case err == nil, s.Action == intent.Keep: // It is written already.
		case !client.HasStatus(err, 400) && !client.HasStatus(err, 412) && !client.HasStatus(err, 413):
			return nil, err
		default:
			refused = append(refused, fmt.Errorf("%s: %s", s.Key, explain(err)))
		}
	}
	return once(placed(want, found)), errors.Join(refused...)
}

// write makes a change, on condition that the object is as it was read.
func (d *siteIntent) write(ctx context.Context, s intent.ObjectChange, want intent.Intent) ([]v1.IntentWarning, error) {
	when := client.Precondition{IfNoneMatch: "*"}
	if etag, exists := d.etags[s.Key]; exists {
		when = client.Precondition{IfMatch: etag}
	}
	k := kindOf(s.Key.Kind)
	if s.Action == intent.Delete {
		return k.remove(ctx, d, s.Key.Name, when, false)
	}
	return k.write(ctx, d, want, s.Key, when)
}

// writeAll makes the changes in their order and returns how many it made, and what the site warned
// of. The error says what was written and what was not.
func (d *siteIntent) writeAll(ctx context.Context, changes []intent.ObjectChange, want intent.Intent) (int, []warning, error) {
	var found []v1.IntentWarning
	for i, s := range changes {
		warnings, err := d.write(ctx, s, want)
		found = append(found, withoutNew(warnings, want)...)
		if err != nil {
			reason := explain(err)
			if client.HasStatus(err, 412) && d.hasChanged(ctx, s.Key) {
				reason = "it changed meanwhile: " + reason
			}
			next := "Run the command again"
			if client.Frozen(err) {
				next = "Run the command again when the run has ended"
			}
			return i, placed(want, found), fmt.Errorf("cannot %s %s: %s\nwritten: %s\nnot written: %s\n%s: it writes what is left",
				s.Action, s.Key, reason, cmp.Or(keyList(changes[:i]), "nothing"), keyList(changes[i:]), next)
		}
	}
	return len(changes), placed(want, found), nil
}

// hasChanged reports whether an object is not as it was read any more.
func (d *siteIntent) hasChanged(ctx context.Context, key intent.Key) bool {
	etag, err := kindOf(key.Kind).read(ctx, d, key.Name)
	return err == nil && etag != d.etags[key] || client.Missing(err) && d.etags[key] != ""
}

// changing returns the changes that are not to keep an object.
func changing(changes []intent.ObjectChange) []intent.ObjectChange {
	return slices.DeleteFunc(slices.Clone(changes), func(s intent.ObjectChange) bool { return s.Action == intent.Keep })
}

// mostListed is how many objects a line lists.
const mostListed = 20

func keyList(changes []intent.ObjectChange) string {
	names := make([]string, len(changes))
	for i, s := range changes {
		names[i] = s.Key.String()
	}
	return text.List(names, mostListed)
}
