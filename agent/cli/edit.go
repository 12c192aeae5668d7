package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// editCommand opens what a site has in an editor and writes what was changed.
type editCommand struct {
	siteOperator
	What []string `arg:"" optional:"" help:"What to edit: config, rollout, calendars, environments, budgets, releases, policies, users, approles or webhooks, or one of them, such as calendar/NAME (default: config, rollout, and all calendars, environments, budgets and releases)." complete:"objects"`
}

// Help is the longer text of --help.
func (c *editCommand) Help() string {
	return "The editor is $VISUAL, $EDITOR or vi. If the text is invalid, the editor opens again and shows what is wrong. " +
		"If somebody else changed an object meanwhile, theirs is not overwritten, and your text is kept in a file."
}

// Run implements the command.
func (c *editCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	asked, err := parseKeys(orIntent(c.What))
	if err != nil {
		return err
	}
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	keys, err := asked.find(ctx, api.Client, c.Tenant)
	if err != nil {
		return err
	}
	site, err := readSiteIntent(ctx, api.Client, c.Tenant, keys)
	if err != nil {
		return err
	}
	s, err := newEdit(site, keys, c.place())
	if err != nil {
		return err
	}
	kept, err := s.edit(ctx, out)
	if kept && err != nil && s.changed() {
		mend := ""
		if s.shown != nil {
			mend = "correct it, and "
		}
		return fmt.Errorf("%w\nThe text is kept in %s; %[3]sosupgrade-agent apply -f %[2]s writes it", err, s.path, mend)
	}
	return errors.Join(err, os.Remove(s.path))
}

// edit is a text that is being edited.
type edit struct {
	site *siteIntent
	path string
	// notes are comments above the text, original the text without them.
	notes    string
	original []byte
	// shown is what was said of the text when it was opened last; nil when it was right.
	shown error
}

// changed reports whether the file has a text that is worth keeping.
func (e *edit) changed() bool {
	saved, err := readFile(e.path)
	text := withoutNotes(saved)
	return err != nil || len(bytes.TrimSpace(text)) > 0 && !bytes.Equal(text, e.original)
}

func newEdit(site *siteIntent, keys []intent.Key, endpoint string) (*edit, error) {
	text, err := site.has.Encode(document.YAML)
	if err != nil {
		return nil, err
	}
	notes := fmt.Sprintf("Tenant %s at %s. Save and close to write your changes; an empty text changes nothing.\n"+
		"An object that you remove from the text stays as it is; to delete it, write null, such as rollout: null.\n", site.tenant, endpoint)
	for _, key := range keys {
		if _, exists := site.etags[key]; !exists {
			notes += fmt.Sprintf("The tenant has no %s yet.\n", key)
		}
	}
	file, err := os.CreateTemp("", "osupgrade-edit-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot make a file to edit: %w", err)
	}
	return &edit{site: site, path: file.Name(), notes: notes, original: text}, file.Close()
}

// edit opens the editor until the text is valid, unchanged or given up, and
// writes it. It reports whether the file holds what was not written.
func (e *edit) edit(ctx context.Context, out io.Writer) (kept bool, err error) {
	last, wrong := e.original, error(nil)
	for {
		text, err := e.open(last, wrong)
		switch {
		case err != nil:
			return true, err
		case len(bytes.TrimSpace(text)) == 0, bytes.Equal(text, e.original):
			_, err := fmt.Fprintln(out, "Nothing was changed.")
			return false, err
		case wrong != nil && bytes.Equal(text, last):
			return true, fmt.Errorf("nothing was written; the text is still invalid:\n%w", e.shown)
		}
		want, changes, warnings, err := e.check(ctx, text)
		if last, wrong = text, err; err != nil {
			if _, ok := errors.AsType[invalidText](err); ok {
				continue
			}
			return true, err
		}
		todo := changing(changes)
		_, told, err := e.site.writeAll(ctx, todo, want)
		if err != nil {
			return true, err
		}
		if err := showChanges(out, todo); err != nil {
			return false, err
		}
		told = slices.DeleteFunc(told, func(w warning) bool { return slices.Contains(warnings, w) })
		for _, w := range append(warnings, told...) { // The file, which the lines are of, goes.
			_, _ = fmt.Fprintln(out, "warning: "+w.Path+": "+w.Text)
		}
		_, err = fmt.Fprintln(out, applied(false, todo))
		return false, err
	}
}

// invalidText is what is wrong with an edited text.
type invalidText struct{ error }

// Unwrap lets errors.AsType see what is wrong.
func (i invalidText) Unwrap() error { return i.error }

// check reads a text and asks the site about it. What is wrong with the text is
// an invalidText.
func (e *edit) check(ctx context.Context, text []byte) (intent.Intent, []intent.ObjectChange, []warning, error) {
	want, err := intent.Decode(intent.Source{Name: filepath.Base(e.path), Text: text})
	if err != nil {
		return want, nil, nil, invalidText{err}
	}
	changes, err := e.site.compare(ctx, want)
	if err != nil {
		return want, nil, nil, err
	}
	warnings, err := e.site.validateAll(ctx, changes, want)
	_, call := errors.AsType[*client.CallError](err)
	if _, other := errors.AsType[*client.Error](err); err != nil && !call && !other {
		err = invalidText{err}
	}
	return want, changes, warnings, err
}

// open shows a text, with what is wrong with it, in the editor, and returns what
// was saved without the comments above it.
func (e *edit) open(text []byte, wrong error) ([]byte, error) {
	notes := e.notes
	if e.shown = nil; wrong != nil {
		notes += "\nThis is invalid. To give up, save it unchanged:\n"
		e.shown = linesDown(wrong, strings.Count(notes+wrong.Error(), "\n")+1)
		notes += e.shown.Error() + "\n"
	}
	var b strings.Builder
	for line := range strings.Lines(notes) {
		b.WriteString(strings.TrimRight("# "+line, "\n ") + "\n")
	}
	if err := os.WriteFile(e.path, append([]byte(b.String()), text...), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the file to edit: %w", err)
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	// As git and kubectl do: the variable may hold arguments.
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", e.path) //nolint:gosec // the operator's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %q failed: %w; set EDITOR to another one", editor, err)
	}
	saved, err := readFile(e.path)
	if err != nil {
		return nil, err
	}
	return withoutNotes(saved), nil
}

// linesDown returns what is wrong with a text as it is found that many lines further
// down.
func linesDown(wrong error, lines int) error {
	problems, ok := errors.AsType[intent.Problems](wrong)
	if !ok {
		return wrong
	}
	problems = slices.Clone(problems)
	for i := range problems {
		if problems[i].Line > 0 {
			problems[i].Line += lines
		}
	}
	return problems
}

// withoutNotes returns a text without the comments at its top.
func withoutNotes(text []byte) []byte {
	for bytes.HasPrefix(text, []byte("#")) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}
