package apt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// apt compares a list with its Release when it fetches it, and never again. After a power cut the
// disk may have the Release and nothing of the list: apt-get update then says that all is as before,
// and a host of which nothing is new seems to have all. So no list is believed that is not what its
// Release says.

// list is a list of packages on this host.
type list struct {
	file string
	// key is its name in the Release.
	key string
}

// compressed are the endings of lists that apt keeps compressed.
var compressed = []string{".lz4", ".zst", ".gz", ".xz", ".bz2", ".lzma"}

// onHost returns the lists that this host has.
func (s *call) onHost(ctx context.Context) (all []list, err error) {
	printed, err := s.read(ctx, "apt-get", slices.Concat(s.sources, []string{"indextargets", "--format", "$(FILENAME)\t$(METAKEY)", "Created-By: Packages"})...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(printed) {
		name, key, _ := strings.Cut(strings.TrimSpace(line), "\t")
		for _, ending := range append([]string{""}, compressed...) {
			if file := name + ending; s.host.Exists(file) {
				all = append(all, list{file, key})
			}
		}
	}
	return all, nil
}

// listed returns an error if the host has no lists, or one that is not what its Release says:
// without them there is nothing to upgrade, ever.
func (s *call) listed(ctx context.Context) error {
	all, err := s.onHost(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return strategy.Fail(message.Repository, fmt.Errorf("this host has no lists of packages; %s", remedy.AptLists))
	}
	for _, l := range all {
		whole, _, err := s.whole(ctx, l)
		if err != nil {
			return err
		}
		if !whole {
			return strategy.Fail(message.Repository, fmt.Errorf("%s is not what its Release says; %s", l.file, remedy.PrepareAgain))
		}
	}
	return nil
}

// dropTorn removes the lists that are not what their Release says, so that apt fetches them again,
// and returns how many. It also removes an empty one of which the Release says nothing: that may be
// whole, or all that a power cut has left of it.
func (s *call) dropTorn(ctx context.Context) (torn int, err error) {
	all, err := s.onHost(ctx)
	if err != nil {
		return 0, err
	}
	for _, l := range all {
		whole, sure, err := s.whole(ctx, l)
		switch {
		case err != nil:
		case !whole, !sure && isEmpty(s.host.Path(l.file)):
			torn++
			s.progress(-1, message.CleanText(l.file+" may be torn; it is fetched again"))
			err = os.Remove(s.host.Path(l.file))
		}
		if err != nil {
			return torn, fmt.Errorf("cannot tell whether the lists of packages are whole: %w", err)
		}
	}
	return torn, nil
}

// whole reports whether a list is what its Release says. One of which the Release says nothing counts as
// whole; sure is false then.
func (s *call) whole(ctx context.Context, l list) (whole, sure bool, err error) {
	about, err := s.host.Read(l.repository() + "InRelease")
	if err == nil && about == "" {
		about, err = s.host.Read(l.repository() + "Release")
	}
	if err != nil {
		return false, false, err
	}
	want := parseReleaseSum(about, l.key)
	if want == "" {
		return true, false, nil
	}
	has, err := s.sumOfList(ctx, s.host.Path(l.file))
	return has == want, true, err
}

func isEmpty(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() == 0
}

// repository is how the files of the repository of a list begin. apt makes the name of a file of its
// address, in which each slash becomes "_", and the end of that is the name of the list in the Release.
func (l list) repository() string {
	begin := l.file
	for range 1 + strings.Count(l.key, "/") {
		begin = begin[:max(0, strings.LastIndexByte(begin, '_'))]
	}
	return begin + "_"
}

// sumOfList returns the sum of a list as the Release has it, which is not compressed.
func (s *call) sumOfList(ctx context.Context, file string) (string, error) {
	if !slices.Contains(compressed, filepath.Ext(file)) {
		return sumOfFile(file)
	}
	// The larger lists have more bytes than a command may print.
	c := program.Command{Name: "sh", Args: []string{"-c", `/usr/lib/apt/apt-helper cat-file "$1" | sha256sum`, "sh", file}, Quiet: true}
	ended, err := s.run(ctx, c)
	sum, _, _ := strings.Cut(ended.Stdout, " ")
	return sum, err
}

// parseReleaseSum returns the sum (SHA-256) that a Release has of a file; empty if it has none.
func parseReleaseSum(text, name string) string {
	of := ""
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case !strings.HasPrefix(line, " "):
			of, _, _ = strings.Cut(line, ":")
		case of == "SHA256" && len(fields) == 3 && fields[2] == name:
			return fields[0]
		}
	}
	return ""
}
