// Command check tests what a change touches, in under three minutes on two cores:
//
//	make check              against the merge base with main
//	make check BASE=HEAD    only what is not committed
//
// It needs neither root nor Terraform, and asks no network. What changed is what git sees
// between the base and the files in the folder, committed or not.
//
//   - Every file is searched for marks of unfinished work, and each changed Go file must be
//     formatted.
//   - go vet reads the packages that changed and all that is compiled of them, so whatever
//     does not compile any more is found.
//   - golangci-lint reads the packages that changed, if it is built.
//   - All tests of the packages that changed, and of those that import them directly, are
//     run. See choose for what is left out.
//   - If the simulation contains what changed, it plays some hundred seeds.
//
// It says at the end what it did not test. make test does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base := flag.String("base", "", "the commit to compare with; the merge base with main by default")
	seeds := flag.Int("seeds", 300, "how many seeds the simulation plays")
	flag.Parse()
	root, err := filepath.Abs("..")
	if err == nil {
		err = (&checker{root: root, seeds: *seeds}).run(ctx, *base)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make check:", err)
		os.Exit(1)
	}
}

// checker runs the jobs of a check.
type checker struct {
	root  string
	seeds int
	// took says how long each job took.
	took []string
	// missing says what was not tested, and why.
	missing []string
	failed  bool
}

// job is one thing to do. It returns what is wrong.
type job struct {
	what string
	do   func(context.Context) error
}

func (c *checker) run(ctx context.Context, base string) error {
	begin := time.Now()
	base, err := c.base(ctx, base)
	if err != nil {
		return err
	}
	changed, err := c.changed(ctx, base)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		fmt.Printf("make check: nothing has changed since %.12s\n", base)
		return nil
	}
	packages, err := c.packages(ctx)
	if err != nil {
		return err
	}
	plan := choose(packages, changed)
	fmt.Printf("make check: %s since %.12s, in %s\n", count(len(changed), "file"), base, list(plan.Changed, "no package"))
	for _, s := range c.jobs(plan, changed) {
		fmt.Printf("make check: %s\n", s.what)
		at := time.Now()
		if err := s.do(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(os.Stderr, "%v\n", err)
			c.failed = true
		}
		what, _, _ := strings.Cut(s.what, ":")
		c.took = append(c.took, fmt.Sprintf("%4.0fs  %s", time.Since(at).Seconds(), what))
	}
	if len(plan.Slow) > 0 {
		c.missing = append(c.missing, "they take long, and only what they import has changed: "+strings.Join(plan.Slow, " "))
	}
	fmt.Printf("make check took %.0fs:\n%s\n", time.Since(begin).Seconds(), strings.Join(c.took, "\n"))
	for _, m := range c.missing {
		fmt.Printf("NOT TESTED: %s\n", m)
	}
	if c.failed {
		return errors.New("failed; see above")
	}
	fmt.Println("make check: all passed; make test is what a change must pass in the end")
	return nil
}

// jobs returns what there is to do, the quickest first.
func (c *checker) jobs(p plan, changed []string) []job {
	jobs := []job{
		{"marks of unfinished work, and documents that are not there", func(ctx context.Context) error { return c.command(ctx, "", "tools/unfinished.sh") }},
		{"gofmt", func(ctx context.Context) error { return c.gofmt(ctx, changed) }},
	}
	if len(p.Vet) > 0 {
		jobs = append(jobs, job{"go vet: " + count(len(p.Vet), "package"), func(ctx context.Context) error { return c.vet(ctx, p.Vet) }})
	}
	for _, folder := range p.Tools {
		jobs = append(jobs, job{"go vet and go test in " + folder, func(ctx context.Context) error {
			inside := "./" + strings.TrimPrefix(folder, "tools/")
			return errors.Join(c.command(ctx, "tools", "go", "vet", inside), c.command(ctx, "tools", "go", "test", inside))
		}})
	}
	if len(p.Lint) > 0 {
		jobs = append(jobs, job{"golangci-lint: " + count(len(p.Lint), "package"), func(ctx context.Context) error { return c.lint(ctx, p.Lint) }})
	}
	if p.Docs {
		jobs = append(jobs, job{"the pages in docs/", c.docs})
	}
	if len(p.Vet) > 0 {
		jobs = append(jobs, job{"the arrows between rooms", func(ctx context.Context) error {
			return c.test(ctx, "-run=^(TestRooms|TestTheProviderContainsNoAgent)$", ".")
		}})
	}
	if slices.ContainsFunc(p.Vet, func(folder string) bool { return strings.HasPrefix(folder, "agent/") }) {
		jobs = append(jobs, job{"the deliberate faults of tools/mutants apply", func(ctx context.Context) error {
			return c.command(ctx, "tools", "go", "run", "./mutants", "-check")
		}})
	}
	if len(p.Test) > 0 {
		jobs = append(jobs, job{"go test: " + strings.Join(p.Test, " "), func(ctx context.Context) error {
			return c.test(ctx, places(p.Test)...)
		}})
	}
	for _, s := range p.Some {
		jobs = append(jobs, job{fmt.Sprintf("go test of %s in %s: %s", count(len(s.Tests), "test"), s.Folder, strings.Join(s.Tests, " ")), func(ctx context.Context) error {
			return c.test(ctx, "-run=^("+strings.Join(s.Tests, "|")+")$", "./"+s.Folder)
		}})
	}
	if p.Simulate {
		jobs = append(jobs, job{fmt.Sprintf("%d seeds of the simulation", c.seeds), func(ctx context.Context) error {
			return c.test(ctx, "-run=^TestSimulation$", "./"+simulation, fmt.Sprintf("-sim.seeds=%d", c.seeds))
		}})
	}
	return jobs
}

// command runs a program in a folder of the repository and prints what it prints.
func (c *checker) command(ctx context.Context, folder, name string, args ...string) error {
	cmd := c.prepare(ctx, name, args...)
	cmd.Dir = filepath.Join(c.root, folder)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// prepare returns a program that gets no terminal, no real host and no CLI.
func (c *checker) prepare(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "REALHOST=off", "TF_ACC_TERRAFORM_PATH=off")
	return cmd
}

// output runs a program in the repository and returns what it prints.
func (c *checker) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := c.prepare(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// base returns the commit to compare with.
func (c *checker) base(ctx context.Context, wanted string) (string, error) {
	for _, name := range []string{wanted, "main", "origin/main"} {
		if name == "" {
			continue
		}
		out, err := c.prepare(ctx, "git", "merge-base", "HEAD", name).Output()
		if err == nil {
			return strings.TrimSpace(string(out)), nil
		}
		if name == wanted {
			return "", fmt.Errorf("git finds no common commit of HEAD and %s; name another with BASE=COMMIT", wanted)
		}
	}
	return "HEAD", nil
}

// changed returns the files that differ from a commit, or are new, by their paths in the
// repository.
func (c *checker) changed(ctx context.Context, base string) ([]string, error) {
	differ, err := c.output(ctx, "git", "-c", "core.quotePath=false", "diff", "--name-only", "--no-renames", base, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := c.output(ctx, "git", "-c", "core.quotePath=false", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(differ+untracked, func(r rune) bool { return r == '\n' }), nil
}

// gofmt reports the changed Go files that are not formatted.
func (c *checker) gofmt(ctx context.Context, changed []string) error {
	var files []string
	for _, name := range changed {
		if _, err := os.Stat(filepath.Join(c.root, name)); err == nil && filepath.Ext(name) == ".go" {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil
	}
	out, err := c.output(ctx, "gofmt", append([]string{"-l"}, files...)...)
	if err == nil && out != "" {
		err = fmt.Errorf("format these files with gofmt -w:\n%s", out)
	}
	return err
}

func (c *checker) vet(ctx context.Context, folders []string) error {
	err := c.command(ctx, "", "go", append([]string{"vet"}, places(folders)...)...)
	for _, folder := range folders {
		// osupgrade-worker is other files of these two.
		if folder == "agent" || folder == "agent/cli" {
			return errors.Join(err, c.command(ctx, "", "go", "vet", "-tags=worker", "./agent", "./agent/cli"))
		}
	}
	return err
}

const bin = ".cache/bin/"

func (c *checker) lint(ctx context.Context, folders []string) error {
	if !c.built("golangci-lint") {
		c.missing = append(c.missing, "golangci-lint is not built; make lint builds it once, in some minutes")
		return nil
	}
	return c.command(ctx, "", filepath.Join(c.root, bin, "golangci-lint"), append([]string{"run"}, places(folders)...)...)
}

func (c *checker) docs(ctx context.Context) error {
	if !c.built("tfplugindocs") {
		c.missing = append(c.missing, "whether docs/ is what make generate writes, because tfplugindocs is not built; make docs-check builds it once")
		return nil
	}
	return c.command(ctx, "", "tools/docs.sh", "check")
}

func (c *checker) built(tool string) bool {
	_, err := os.Stat(filepath.Join(c.root, bin, tool))
	return err == nil
}

// places returns folders as arguments of go.
func places(folders []string) []string {
	named := make([]string, len(folders))
	for i, f := range folders {
		named[i] = "./" + f
	}
	return named
}

func list(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, " ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
