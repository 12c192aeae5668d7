package dnf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// What a release selects as of a time is installed from repositories as they were then: each
// repository of the host is read at the address of dnf-snapshot, and has a cache of its own. dnf
// itself knows no past.

// repositoryWord is the part of dnf-snapshot that is the id of a repository.
const repositoryWord = "{repo}"

// pastCache is where what is fetched of the time is kept.
func (s *call) pastCache() string {
	return filepath.Join(s.pastCaches(), s.what.AsOf.UTC().Format(strategy.SnapshotTime))
}

// pastCaches is where the folder of each time is.
func (g *generation) pastCaches() string { return g.cache + "-osupgrade" }

// past returns the options that have dnf use the repositories as of the time.
func (s *call) past(ctx context.Context) ([]string, error) {
	if s.Snapshot == "" {
		return nil, strategy.Fail(message.Repository, fmt.Errorf("the release is as of %s, and the repositories of this host have no past; %s",
			s.what.AsOf.UTC().Format(time.RFC3339), remedy.DNFNoPast))
	}
	printed, err := s.read(ctx, s.command, append(append([]string{}, s.options...), offline, "repolist")...)
	if err != nil {
		return nil, err
	}
	options := []string{"--setopt=cachedir=" + s.pastCache()}
	for _, id := range parseRepositories(printed) {
		options = append(options, "--setopt="+id+".metalink=", "--setopt="+id+".mirrorlist=",
			"--setopt="+id+".baseurl="+s.Snapshot.At(s.what.AsOf, repositoryWord, id))
	}
	return options, nil
}

// parseRepositories reads the ids of the repositories that are enabled from the output of
// dnf repolist.
func parseRepositories(printed string) (ids []string) {
	for line := range strings.Lines(printed) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "repo id ") && !strings.HasPrefix(line, " ") {
			ids = append(ids, words[0])
		}
	}
	return ids
}

// forget removes what was fetched of other times.
func (s *call) forget() error {
	names, err := s.host.Names(s.pastCaches())
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == filepath.Base(s.pastCache()) {
			continue
		}
		if err := os.RemoveAll(s.host.Path(filepath.Join(s.pastCaches(), name))); err != nil {
			return err
		}
	}
	return nil
}
