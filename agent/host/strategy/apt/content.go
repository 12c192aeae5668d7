package apt

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// dpkg records a package as installed when it has synced the content of its files. The
// renames that put them in their place are on disk later; where they are on another file
// system than dpkg's database, that may be after a power cut. The record then is of the new
// version, and the files are those of the old one. So Resume believes no record of an
// upgrade that was interrupted.

// proveContents has the files of a plan's packages be those of the versions that dpkg has
// recorded: what differs is unpacked again. What differs even then was changed by
// something else on this host, such as a diversion, and not by an interruption.
func (s *call) proveContents(ctx context.Context, changes []message.Change) error {
	differ, err := s.unlike(ctx, changes)
	if err != nil || len(differ) == 0 {
		return err
	}
	s.progress(-1, "repairing: unpacking again what dpkg has recorded and the disk does not have: "+few(arguments(differ)))
	args, err := s.withArchives(ctx, append([]string{"--reinstall", "--allow-downgrades", "install"}, arguments(differ)...), changes)
	if err != nil {
		return err
	}
	if err := s.apt(ctx, span{0, 95}, args...); err != nil {
		return err
	}
	differ, err = s.unlike(ctx, changes)
	if len(differ) > 0 {
		s.progress(-1, "files of "+few(arguments(differ))+" differ from those of their archives though these were just unpacked: something else on this host has changed them; see: dpkg --verify")
	}
	return err
}

// unlike returns the packages of a plan that dpkg has recorded in the planned version, and
// whose files are those of another one.
func (s *call) unlike(ctx context.Context, changes []message.Change) (differ []target, err error) {
	now, err := s.packages(ctx)
	if err != nil {
		return nil, err
	}
	var recorded []target
	for _, c := range changes {
		if have := now[c.Name]; c.To != "" && have.isInstalled() && have.version == c.To {
			recorded = append(recorded, target{c.Name, c.To})
		}
	}
	whole, err := s.verified(ctx, recorded)
	if err != nil {
		return nil, err
	}
	for _, t := range recorded {
		same := whole
		if !same {
			if same, err = s.verified(ctx, []target{t}); err != nil {
				return nil, err
			}
		}
		if same {
			same, err = s.settled(ctx, t)
		}
		if err != nil {
			return nil, err
		}
		if !same {
			differ = append(differ, t)
		}
	}
	return differ, nil
}

// verified reports whether all files of some packages have the sums that dpkg has recorded.
func (s *call) verified(ctx context.Context, recorded []target) (bool, error) {
	if len(recorded) == 0 {
		return true, nil
	}
	c := program.Command{Name: "dpkg", Args: []string{"--verify"}, Quiet: true}
	for _, t := range recorded {
		c.Args = append(c.Args, t.name)
	}
	ended, err := s.run(ctx, c)
	if err != nil {
		return false, err
	}
	if ended.Exit != 0 && strings.TrimSpace(ended.Stdout) == "" {
		return false, failure("dpkg --verify", ended, nil)
	}
	excluded, err := s.excluded()
	return len(parseVerify(ended.Stdout, excluded)) == 0, err
}

// parseVerify returns the files that dpkg --verify has found to differ, such as
// "??5??????   /usr/bin/a", or to be "missing". Configuration files ("c") are the operator's, and
// what matches excluded was never unpacked.
func parseVerify(printed string, excluded []string) (files []string) {
	for line := range strings.Lines(printed) {
		result, file, ok := strings.Cut(strings.TrimRight(line, "\n"), "/")
		fields := strings.Fields(result)
		if !ok || len(fields) != 1 || fields[0] == "missing" && excludes(excluded, "/"+file) {
			continue
		}
		files = append(files, "/"+file)
	}
	return files
}

// excluded returns the patterns of files that dpkg does not unpack on this host, such as
// /usr/share/doc/*.
func (s *Strategy) excluded() (patterns []string, err error) {
	const folder = "/etc/dpkg/dpkg.cfg.d"
	names, err := s.host.Names(folder)
	if err != nil {
		return nil, err
	}
	files := []string{"/etc/dpkg/dpkg.cfg"}
	for _, name := range names {
		files = append(files, folder+"/"+name)
	}
	for _, file := range files {
		text, err := s.host.Read(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			name, pattern, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "--"), "=")
			if strings.TrimSpace(name) == "path-exclude" {
				patterns = append(patterns, strings.TrimSpace(pattern))
			}
		}
	}
	return patterns, nil
}

// excludes reports whether a pattern matches a file. Unlike path.Match, "*" is any text.
func excludes(patterns []string, file string) bool {
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, err := path.Match(flat(pattern), flat(file))
		return err == nil && matches
	})
}

// settled reports whether the database has what the archive of a version says of its files,
// if it is kept, and each file was given its name: dpkg unpacks it under another one.
func (s *call) settled(ctx context.Context, t target) (bool, error) {
	list, err := s.info(ctx, t.name, "list")
	if err != nil {
		return false, err
	}
	for file := range strings.Lines(list) {
		if s.host.Exists(strings.TrimRight(file, "\n") + ".dpkg-new") {
			return false, nil
		}
	}
	file := s.archiveOf(message.Change{Name: t.name, To: t.version})
	if file == "" {
		return true, nil
	}
	ended, err := s.run(ctx, program.Command{Name: "dpkg-deb", Args: []string{"--info", file, "md5sums"}, Quiet: true})
	if err != nil || ended.Exit != 0 {
		return true, err // It has none, or is damaged, which its sum tells.
	}
	sums, err := s.info(ctx, t.name, "md5sums")
	return strings.TrimSpace(sums) == strings.TrimSpace(ended.Stdout), err
}

// info returns a file that dpkg keeps of a package; empty if there is none.
func (s *call) info(ctx context.Context, name, kind string) (string, error) {
	native, err := s.native(ctx)
	if err != nil {
		return "", err
	}
	for _, candidate := range []string{name, name + ":" + native} {
		text, err := s.host.Read("/var/lib/dpkg/info/" + candidate + "." + kind)
		if err != nil || text != "" {
			return text, err
		}
	}
	return "", nil
}
