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
		return want, misusedf("%s declares nothing; give at least one of config, rollout, calendars and budgets", strings.Join(f.File, ", "))
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
		return []intent.Source{{Name: standardInput, Text: text, ReadFile: readFile}}, err
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
		besides := func(file string) ([]byte, error) {
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(name), file)
			}
			return readFile(file)
		}
		sources = append(sources, intent.Source{Name: name, Text: text, ReadFile: besides})
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
	d := &siteIntent{
		api: api, tenant: tenant, etags: map[intent.Key]string{},
		has: intent.Intent{Calendars: map[string]v1.Calendar{}, Budgets: map[string]v1.Budget{}},
	}
	for _, key := range keys {
		if err := d.read(ctx, key); err != nil && !client.Missing(err) {
			return nil, err
		}
	}
	return d, nil
}

// siteIntent reads the objects that a command names, and returns their keys.
func (o *operator) siteIntent(ctx context.Context, names []string) (*siteIntent, []intent.Key, error) {
	api, err := o.client()
	if err != nil {
		return nil, nil, err
	}
	keys, err := parseKeys(ctx, api, o.Tenant, names)
	if err != nil {
		return nil, nil, err
	}
	site, err := readSiteIntent(ctx, api, o.Tenant, keys)
	return site, keys, err
}

func (d *siteIntent) read(ctx context.Context, key intent.Key) (err error) {
	var etag string
	switch key.Kind {
	case intent.Config:
		var value v1.OSUpgrade
		if value, etag, err = d.api.Config(ctx, d.tenant); err == nil {
			d.has.Config = &value
		}
	case intent.Rollout:
		var value v1.Rollout
		if value, etag, err = d.api.Rollout(ctx, d.tenant); err == nil {
			d.has.Rollout = &value
		}
	case intent.Calendar:
		var value v1.Calendar
		if value, etag, err = d.api.Calendar(ctx, d.tenant, key.Name); err == nil {
			d.has.Calendars[key.Name] = value
		}
	case intent.Budget:
		var value v1.Budget
		if value, etag, err = d.api.Budget(ctx, d.tenant, key.Name); err == nil {
			d.has.Budgets[key.Name] = value
		}
	}
	if err == nil {
		d.etags[key] = etag
	}
	return err
}

// validate asks the site whether it would accept a step, and changes nothing. It returns
// what is to be warned of, for an object that stays as it is, too.
func (d *siteIntent) validate(ctx context.Context, s intent.Step, want intent.Intent) ([]v1.IntentWarning, error) {
	switch {
	case s.Action == intent.Delete:
		return nil, nil
	case s.Key.Kind == intent.Config && want.Config != nil:
		found, err := d.api.ValidateConfig(ctx, d.tenant, *want.Config)
		if err == nil && s.Action != intent.Keep {
			found = append(found, d.withoutWindows(ctx, want, time.Now())...)
		}
		return found, err
	case s.Key.Kind == intent.Rollout && want.Rollout != nil:
		return d.api.ValidateRollout(ctx, d.tenant, *want.Rollout)
	case s.Key.Kind == intent.Budget:
		return d.api.ValidateBudget(ctx, d.tenant, s.Key.Name, want.Budgets[s.Key.Name])
	case s.Action == intent.Keep:
		return nil, nil
	}
	return nil, d.api.ValidateCalendar(ctx, d.tenant, s.Key.Name, want.Calendars[s.Key.Name])
}

// validateAll asks about all steps. It returns what is to be warned of, and all that the site
// refuses.
func (d *siteIntent) validateAll(ctx context.Context, steps []intent.Step, want intent.Intent) ([]warning, error) {
	var found []v1.IntentWarning
	var refused []error
	for _, s := range steps {
		warnings, err := d.validate(ctx, s, want)
		found = append(found, warnings...)
		switch {
		case err == nil, s.Action == intent.Keep: // It is written already.
		case !client.HasStatus(err, 400):
			return nil, err
		default:
			refused = append(refused, fmt.Errorf("%s: %s", s.Key, explain(err)))
		}
	}
	return placed(want, found), errors.Join(refused...)
}

// write takes a step, on condition that the object is as it was read.
func (d *siteIntent) write(ctx context.Context, s intent.Step, want intent.Intent) (err error) {
	when := client.Precondition{IfNoneMatch: "*"}
	if etag, exists := d.etags[s.Key]; exists {
		when = client.Precondition{IfMatch: etag}
	}
	remove := s.Action == intent.Delete
	switch name := s.Key.Name; {
	case s.Key.Kind == intent.Config && remove:
		return d.api.DeleteConfig(ctx, d.tenant, when)
	case s.Key.Kind == intent.Config:
		_, err = d.api.PutConfig(ctx, d.tenant, *want.Config, when)
	case s.Key.Kind == intent.Rollout && remove:
		return d.api.DeleteRollout(ctx, d.tenant, when)
	case s.Key.Kind == intent.Rollout:
		_, err = d.api.PutRollout(ctx, d.tenant, *want.Rollout, when)
	case s.Key.Kind == intent.Budget && remove:
		return d.api.DeleteBudget(ctx, d.tenant, name, when)
	case s.Key.Kind == intent.Budget:
		_, err = d.api.PutBudget(ctx, d.tenant, name, want.Budgets[name], when)
	case remove:
		return d.api.DeleteCalendar(ctx, d.tenant, name, when)
	default:
		_, err = d.api.PutCalendar(ctx, d.tenant, name, want.Calendars[name], when)
	}
	return err
}

// writeAll takes the steps in their order and returns how many it took. The error
// says what was written and what was not.
func (d *siteIntent) writeAll(ctx context.Context, steps []intent.Step, want intent.Intent) (int, error) {
	for i, s := range steps {
		if err := d.write(ctx, s, want); err != nil {
			reason := explain(err)
			if client.HasStatus(err, 412) {
				reason = "it changed meanwhile: " + reason
			}
			return i, fmt.Errorf("cannot %s %s: %s\nwritten: %s\nnot written: %s\nRun the command again: it writes what is left",
				s.Action, s.Key, reason, cmp.Or(keyList(steps[:i]), "nothing"), keyList(steps[i:]))
		}
	}
	return len(steps), nil
}

// changes returns the steps that change something.
func changes(steps []intent.Step) []intent.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s intent.Step) bool { return s.Action == intent.Keep })
}

func keyList(steps []intent.Step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Key.String()
	}
	return strings.Join(names, ", ")
}

// parseKeys reads what get and edit are asked for. Nothing is everything.
func parseKeys(ctx context.Context, api *client.Client, tenant string, texts []string) ([]intent.Key, error) {
	if len(texts) == 0 {
		texts = []string{"config", "rollout", "calendars", "budgets"}
	}
	var keys []intent.Key
	for _, text := range texts {
		kind, name, _ := strings.Cut(text, "/")
		switch {
		case text == "config" || text == "rollout":
			keys = append(keys, intent.Key{Kind: intent.Kind(text)})
		case text == "calendars":
			list, err := api.Calendars(ctx, tenant)
			if err != nil && !client.Missing(err) {
				return nil, err
			}
			for _, info := range list {
				keys = append(keys, intent.Key{Kind: intent.Calendar, Name: info.Name})
			}
		case text == "budgets":
			list, err := api.Budgets(ctx, tenant)
			if err != nil && !client.Missing(err) {
				return nil, err
			}
			for _, info := range list {
				keys = append(keys, intent.Key{Kind: intent.Budget, Name: info.Name})
			}
		case (kind == "calendar" || kind == "budget") && name != "":
			keys = append(keys, intent.Key{Kind: intent.Kind(kind), Name: name})
		default:
			return nil, misusedf("%.100q is not an object; use config, rollout, calendars, calendar/NAME, budgets or budget/NAME", text)
		}
	}
	return keys, nil
}
