package apt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// environment is that of every apt and dpkg: no question is asked, and no service is
// restarted by needrestart.
var environment = []string{
	"DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none", "APT_LISTBUGS_FRONTEND=none",
	"NEEDRESTART_SUSPEND=1", "NEEDRESTART_MODE=l",
}

// call is what one call of the strategy has in common: what is to be installed, where progress
// goes, and which sources apt uses.
type call struct {
	*Strategy
	what release.Packages
	// field is what lists packages, for errors.
	field    string
	progress func(percent int, text string)
	// sources are the options that choose other sources than those of /etc/apt.
	sources []string
	// until is when waiting for a lock ends; the zero time never.
	until time.Time
	// goesBack is set while the versions of before are installed again.
	goesBack bool
}

func (s *Strategy) call(job strategy.Job) (*call, error) {
	what, err := job.Packages(s.Declared.packages)
	call := &call{Strategy: s, what: what, field: "apt-packages", progress: job.Progress, until: time.Now().Add(s.LockLimit)}
	if job.Release != nil {
		call.field = "only of the release"
	} else if s.Declared.sources != "" {
		call.sources = sourceOptions(s.Declared.sources, "/dev/null")
	}
	if !what.AsOf.IsZero() {
		call.sources = call.past()
	}
	return call, err
}

// chosen has apt use other sources.
func chosen(list, parts string) []string {
	return []string{"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=" + parts}
}

// sourceOptions has apt use other sources. The lists of the host's own stay.
func sourceOptions(list, parts string) []string {
	return append(chosen(list, parts), "-o", "APT::Get::List-Cleanup=false")
}

// options are those of every apt-get.
func (s *call) options() []string {
	phased := "APT::Get::Never-Include-Phased-Updates=true"
	if s.Phased == "include" {
		phased = "APT::Get::Always-Include-Phased-Updates=true"
	}
	// No packages go that the plan does not name, whatever the configuration says.
	list := []string{
		"-q", "-y", "-o", phased, "-o", "APT::Get::AutomaticRemove=false", "-o", "APT::Get::Show-User-Simulation-Note=false",
		"-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3",
		"-o", "DPkg::Lock::Timeout=" + strconv.Itoa(max(1, int(s.LockLimit.Seconds()))),
	}
	for _, force := range s.conffileOptions() {
		list = append(list, "-o", "Dpkg::Options::="+force)
	}
	return append(list, s.sources...)
}

// conffileOptions are the options of dpkg for configuration files that were changed.
func (s *Strategy) conffileOptions() []string {
	switch s.Conffiles {
	case "keep":
		return []string{"--force-confdef", "--force-confold"}
	case "replace":
		return []string{"--force-confnew"}
	default:
		return nil
	}
}

// conffileEnvironment says the same to ucf(1), which many packages use.
func (s *Strategy) conffileEnvironment() []string {
	switch s.Conffiles {
	case "keep":
		return []string{"UCF_FORCE_CONFFOLD=1"}
	case "replace":
		return []string{"UCF_FORCE_CONFFNEW=1"}
	default:
		return nil
	}
}

// span is the part of the progress of an action that a command takes, in percent.
type span struct{ from, to int }

func (s span) at(percent int) int { return s.from + (s.to-s.from)*percent/100 }

// apt runs an apt-get that changes something, and tells its progress.
func (s *call) apt(ctx context.Context, part span, args ...string) error {
	var said []string
	last := -1
	c := program.Command{Name: "apt-get", Env: s.conffileEnvironment(), Status: func(line string) {
		status, ok := parseStatusLine(line)
		if !ok {
			return
		}
		if status.kind == "pmerror" {
			said = append(said, status.of+": "+status.text)
		}
		// apt repeats itself, and a large upgrade has thousands of lines.
		if percent := part.at(status.percent); percent != last {
			s.progress(percent, message.CleanText(status.text))
			last = percent
		}
	}}
	c.Args = slices.Concat(s.options(), []string{"-o", "APT::Status-Fd=" + strconv.Itoa(program.StatusFD)}, args)
	return s.locking(ctx, func() error {
		said = nil
		ended, err := s.run(ctx, c)
		if err == nil && ended.Exit != 0 {
			err = failure("apt-get "+verb(args), ended, said)
		}
		return err
	})
}

// toDisk has everything on disk that was written so far: what is told to be prepared or done
// stays so in a power cut.
func (s *call) toDisk(ctx context.Context) error {
	s.progress(98, "syncing to disk")
	return s.sync(ctx, func(text string) { s.progress(-1, text) })
}

// verb returns the command of apt-get among its arguments.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-o":
			i++
		case arg[0] != '-':
			return arg
		}
	}
	return ""
}

// dpkg runs a dpkg that changes something. dpkg itself does not wait for a lock.
func (s *call) dpkg(ctx context.Context, args ...string) error {
	c := program.Command{Name: "dpkg", Env: s.conffileEnvironment(), Args: append(s.conffileOptions(), args...)}
	return s.locking(ctx, func() error {
		ended, err := s.run(ctx, c)
		if err == nil && ended.Exit != 0 {
			err = failure("dpkg "+args[0], ended, nil)
		}
		return err
	})
}

// simulate asks apt-get what it would do. An error of class install says that apt
// refuses.
func (s *call) simulate(ctx context.Context, args ...string) (simulation, error) {
	c := program.Command{Name: "apt-get", Quiet: true, Args: slices.Concat(s.options(), []string{"--simulate"}, args)}
	ended, err := s.run(ctx, c)
	if err == nil && ended.Exit != 0 {
		err = failure("apt-get --simulate "+verb(args), ended, nil)
	}
	if err != nil {
		return simulation{}, err
	}
	would, err := parseSimulation(ended.Stdout)
	if err != nil {
		return simulation{}, fmt.Errorf("cannot read what apt would do: %w", err)
	}
	return would, nil
}

// offers asks apt for the versions of packages.
func (s *call) offers(ctx context.Context, names []string) (policy, error) {
	if len(names) == 0 {
		return policy{}, nil
	}
	printed, err := s.read(ctx, "apt-cache", slices.Concat(s.sources, []string{"policy"}, names)...)
	if err != nil {
		return nil, err
	}
	return parsePolicy(printed)
}

// known asks apt for its indexes and pins.
func (s *call) known(ctx context.Context) (sources, error) {
	printed, err := s.read(ctx, "apt-cache", append(slices.Clone(s.sources), "policy")...)
	return parseSources(printed), err
}
