package apt

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// What a release selects as of a time is installed from repositories as they were then. With
// apt-snapshot the sources of the host are copied with other addresses beside the state of the
// strategy, and have lists of their own. Without it apt has to know where the snapshots of a
// source are: it does since 2.7, and in 2.0.10 and 2.4.11 of sources with the option snapshot.

// addressWords are the parts of a source's address that apt-snapshot may have.
var addressWords = []string{"{host}", "{path}"}

// pastLists has the lists of another time. apt itself removes there what is of a third.
const pastLists = "/var/lib/apt/osupgrade"

// dated is where the sources of the time are.
func (s *call) dated() string {
	return filepath.Join(s.StateDir, "dated", s.what.AsOf.UTC().Format(strategy.SnapshotTime))
}

// past are the options that choose the repositories of the time.
func (s *call) past() []string {
	if s.Snapshot == "" {
		return []string{"-o", "APT::Snapshot=" + s.what.AsOf.UTC().Format(strategy.SnapshotTime)}
	}
	// What a repository had then has expired since.
	return append(chosen(filepath.Join(s.dated(), mainSources), filepath.Join(s.dated(), moreSources)),
		"-o", "Dir::State::lists="+pastLists, "-o", "Acquire::Check-Valid-Until=false")
}

// lists fetches the lists of what is to be installed: as they are now, or as they were at its
// time. The files of the sources are in a folder; now are the options that choose them.
func (s *call) lists(ctx context.Context, root hostfs.Root, folder string, now []string) error {
	switch {
	case s.what.AsOf.IsZero():
		if now != nil {
			s.sources = now
		}
		return s.update(ctx)
	case s.Snapshot != "":
		if err := s.date(root, folder); err != nil {
			return err
		}
		return s.update(ctx)
	}
	// apt reads in the present lists where the past ones are.
	present := *s
	present.sources = now
	if err := present.update(ctx); err != nil {
		return err
	}
	s.sources = slices.Concat(now, s.past())
	if err := s.update(ctx); err != nil {
		return err
	}
	return s.allPast(ctx)
}

// allPast returns an error if apt takes a source as it is now: apt says nothing of it.
func (s *call) allPast(ctx context.Context) error {
	known, err := s.known(ctx)
	if err != nil {
		return err
	}
	if present := known.without(s.what.AsOf.UTC().Format(strategy.SnapshotTime)); len(present) > 0 {
		return strategy.Fail(message.Repository, fmt.Errorf("the release is as of %s, and apt knows no snapshot of %s; %s",
			s.what.AsOf.UTC().Format(time.RFC3339), few(present), remedy.AptNoPast))
	}
	return nil
}

// without returns the indexes whose address does not have a text.
func (k sources) without(text string) (list []string) {
	for _, index := range slices.Sorted(maps.Keys(k.security)) {
		if strings.HasSuffix(index, " Packages") && !strings.Contains(index, text) {
			list = append(list, strings.TrimSuffix(index, " Packages"))
		}
	}
	return list
}

// fetched returns ErrNoPlan if the lists of the time are not there.
func (s *call) fetched(ctx context.Context) error {
	if s.what.AsOf.IsZero() {
		return nil
	}
	err := s.listed(ctx)
	if err == nil && s.Snapshot == "" {
		err = s.allPast(ctx)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the lists as of %s are fetched when the host is prepared: %w", s.what.AsOf.UTC().Format(time.RFC3339), strategy.ErrNoPlan)
	}
	return err
}

// date writes the sources of a folder with the addresses of the time.
func (s *call) date(root hostfs.Root, folder string) error {
	files, err := sourceFiles(root, folder)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Dir(s.dated())); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.dated(), moreSources), 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := dating{s.Snapshot, s.what.AsOf}.file(name, files[name])
		if err != nil {
			return strategy.Fail(message.Repository, fmt.Errorf("%s: %w", filepath.Join(aptFolder, name), err))
		}
		if err := durable.WriteFile(filepath.Join(s.dated(), name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// dating gives sources the addresses at which they are as of a time.
type dating struct {
	pattern strategy.SnapshotURL
	at      time.Time
}

// file rewrites a file of sources.list(5), by its name in the one or the other format.
func (d dating) file(name, text string) (string, error) {
	var b strings.Builder
	if filepath.Ext(name) == ".sources" {
		for _, stanza := range splitStanzas(text) {
			dated, err := d.stanza(stanza)
			if err != nil {
				return "", err
			}
			b.WriteString(dated)
		}
		return b.String(), nil
	}
	for number, line := range strings.SplitAfter(text, "\n") {
		words, err := splitSource(line)
		if err == nil && words != nil {
			var dated string
			dated, err = d.address(words.uri)
			line = line[:words.uriAt] + dated + line[words.uriAt+len(words.uri):]
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", number+1, err)
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// stanza rewrites the addresses of a stanza that is enabled.
func (d dating) stanza(stanza string) (string, error) {
	fields := stanzaFields(stanza)
	if strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
		return stanza, nil
	}
	var failed error
	dated := eachWord(stanza, "uris", func(uri string) string {
		address, err := d.address(uri)
		if err != nil && failed == nil {
			failed = err
		}
		return address
	})
	return dated, failed
}

// address returns the address of a source as of the time.
func (d dating) address(uri string) (string, error) {
	at, err := url.Parse(uri)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("%.200q is not at an address that apt-snapshot could have as of a time; %s", uri, remedy.AptNoPast)
	}
	return d.pattern.At(d.at, "{host}", at.Host, "{path}", strings.Trim(at.Path, "/")), nil
}
