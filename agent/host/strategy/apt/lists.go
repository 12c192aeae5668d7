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
// and the host seems to be up to date. So each list is compared with its Release before a plan.

// list is a list of packages on this host.
type list struct {
	file string
	// key is its name in the Release.
	key string
}

// verdict is how a list compares with its Release.
type verdict int

const (
	// unproved lists are those of which the Release says nothing.
	unproved verdict = iota
	whole
	torn
)

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
		found, err := s.compare(ctx, l)
		if err != nil {
			return err
		}
		if found == torn {
			return strategy.Fail(message.Repository, fmt.Errorf("%s is not what its Release says; %s", l.file, remedy.PrepareAgain))
		}
	}
	return nil
}

// dropTorn removes the lists that are torn, so that apt fetches them again. It also removes an empty one
// that is unproved: it may be whole, or all that a power cut has left of it.
func (s *call) dropTorn(ctx context.Context) error {
	all, err := s.onHost(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		found, err := s.compare(ctx, l)
		switch {
		case err != nil:
		case found == torn:
			s.progress(-1, message.CleanText(l.file+" is not what its Release says; it is fetched again"))
			err = os.Remove(s.host.Path(l.file))
		case found == unproved && s.isEmpty(l):
			err = os.Remove(s.host.Path(l.file))
		}
		if err != nil {
			return fmt.Errorf("cannot check or remove a list of packages: %w", err)
		}
	}
	return nil
}

// compare compares a list with its Release.
func (s *call) compare(ctx context.Context, l list) (verdict, error) {
	about, err := s.host.Read(l.repository() + "InRelease")
	if err == nil && about == "" {
		about, err = s.host.Read(l.repository() + "Release")
	}
	if err != nil {
		return unproved, err
	}
	want := parseReleaseSum(about, l.key)
	if want == "" {
		return unproved, nil
	}
	has, err := s.sumOfList(ctx, s.host.Path(l.file))
	if has != want {
		return torn, err
	}
	return whole, err
}

func (s *call) isEmpty(l list) bool {
	info, err := os.Stat(s.host.Path(l.file))
	return err == nil && info.Size() == 0
}

// repository returns how the names of the files of its repository begin. apt names a list after its address,
// with "_" for each slash, and the address ends with the key.
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
	// Not read by the worker: a large list has more bytes than a command may print.
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
