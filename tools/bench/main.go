// Command bench measures the figures of the product, and those of another commit beside
// them, so that whoever makes something slower sees it:
//
//	make bench                       all figures, beside those of the last tag if there is one
//	make bench BASE=REV              beside those of a commit
//	make bench BENCH=Serial ROUNDS=4 only some benchmarks (go test -bench), fewer rounds
//	make bench DOCS=1                also writes the table of docs/guides/figures.md
//
// Both commits are built before anything is measured, BASE in a worktree of its own. In each
// round both run the benchmarks of a package one after the other, each first in turn, so
// that the load of the machine is that of both. benchstat compares them. A benchmark that
// waits for the disk or the network measures the floor of the machine as well (package
// measure), and the table has it beside each of its figures.
//
// What is measured stays in .cache/bench: now.txt and base.txt are input for benchstat.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base := flag.String("base", "", "the commit to compare with; the last tag by default")
	b := &bencher{}
	flag.StringVar(&b.bench, "bench", ".", "which benchmarks to run (go test -bench)")
	flag.IntVar(&b.rounds, "rounds", 6, "how often to run each; fewer than 4 show no difference, fewer than 6 no spread")
	docs := flag.Bool("docs", false, "write the table of "+page)
	flag.Parse()
	root, err := filepath.Abs("..")
	if err == nil {
		b.root, b.work = root, filepath.Join(root, ".cache", "bench")
		err = b.run(ctx, *base, *docs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make bench:", err)
		os.Exit(1)
	}
}

// bencher measures the tree in root, and keeps what it builds and measures in work.
type bencher struct {
	root, work, bench string
	rounds            int
	// load is that of the machine before the first round (proc(5)).
	load string
}

// side is one of the two commits that are compared.
type side struct {
	// name is that of its file of figures.
	name string
	// tree has its source, programs its test programs by the folder of their package.
	tree     string
	programs map[string]string
}

func (b *bencher) run(ctx context.Context, base string, docs bool) error {
	if err := os.RemoveAll(b.work); err != nil {
		return err
	}
	sides, remove, err := b.sides(ctx, base)
	defer remove()
	if err != nil {
		return err
	}
	for _, s := range sides {
		if err := b.build(ctx, s); err != nil {
			return err
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	b.load, _, _ = strings.Cut(string(load), " ")
	if err := b.measure(ctx, sides); err != nil {
		return err
	}
	rows, err := b.compare(ctx, sides)
	if err != nil {
		return err
	}
	fmt.Print(table(rows, len(sides) > 1))
	if docs {
		return b.writePage(ctx, rows)
	}
	return nil
}

// sides returns this tree and that of the commit to compare with, and what removes the latter.
func (b *bencher) sides(ctx context.Context, base string) (sides []*side, remove func(), err error) {
	remove = func() {}
	now := &side{name: "now", tree: b.root}
	if base == "" {
		tag, err := b.output(ctx, b.root, "git", "describe", "--tags", "--abbrev=0")
		if err != nil {
			fmt.Println("make bench: there is no tag to compare with; name a commit: make bench BASE=REV")
			return []*side{now}, remove, nil
		}
		base = strings.TrimSpace(tag)
	}
	// Outside of the repository: what searches it for source should not find this one.
	tree, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, remove, err
	}
	if _, err := b.output(ctx, b.root, "git", "worktree", "add", "--detach", tree, base); err != nil {
		return nil, remove, fmt.Errorf("cannot check out BASE=%s: %w", base, err)
	}
	remove = func() {
		// ctx may have ended.
		_, _ = b.output(context.WithoutCancel(ctx), b.root, "git", "worktree", "remove", "--force", tree)
	}
	return []*side{{name: "base", tree: tree}, now}, remove, nil
}

// build makes the test program of each package that has wanted benchmarks.
func (b *bencher) build(ctx context.Context, s *side) error {
	wanted, err := regexp.Compile(strings.Split(b.bench, "/")[0])
	if err != nil {
		return fmt.Errorf("cannot read BENCH=%s: %w", b.bench, err)
	}
	found, err := b.output(ctx, s.tree, "git", "grep", "--untracked", "^func Benchmark", "--", "agent", "provider")
	if err != nil {
		return err
	}
	s.programs = map[string]string{}
	for line := range strings.Lines(found) {
		file, function, _ := strings.Cut(line, ":func ")
		name, _, _ := strings.Cut(function, "(")
		folder := filepath.Dir(file)
		if !wanted.MatchString(name) || s.programs[folder] != "" {
			continue
		}
		program := filepath.Join(b.work, s.name, strings.ReplaceAll(folder, "/", "_")+".test")
		if _, err := b.output(ctx, s.tree, "go", "test", "-c", "-vet=off", "-o", program, "./"+folder); err != nil {
			return err
		}
		s.programs[folder] = program
	}
	if len(s.programs) == 0 && s.name == "now" {
		return fmt.Errorf("no benchmark matches BENCH=%s", b.bench)
	}
	return nil
}

// measure runs the benchmarks of all sides and appends their figures to the files.
func (b *bencher) measure(ctx context.Context, sides []*side) error {
	var folders []string
	for _, s := range sides {
		for folder := range s.programs {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	for round := range b.rounds {
		slices.Reverse(sides)
		for _, folder := range folders {
			for _, s := range sides {
				if s.programs[folder] == "" {
					continue
				}
				fmt.Fprintf(os.Stderr, "make bench: round %d of %d: %s, %s\n", round+1, b.rounds, folder, s.name)
				if err := b.measureOne(ctx, s, folder); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bencher) measureOne(ctx context.Context, s *side, folder string) error {
	figures, err := b.output(ctx, filepath.Join(s.tree, folder), s.programs[folder],
		"-test.run=^$", "-test.bench="+b.bench, "-test.benchmem", "-test.timeout=0")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(b.figures(s), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, figures)
	return errors.Join(err, file.Close())
}

func (b *bencher) figures(s *side) string { return filepath.Join(b.work, s.name+".txt") }

// compare has benchstat compare the figures.
func (b *bencher) compare(ctx context.Context, sides []*side) ([]row, error) {
	slices.SortFunc(sides, func(a, b *side) int { return strings.Compare(a.name, b.name) })
	args := []string{"tool", "benchstat", "-format=csv"}
	for _, s := range sides {
		args = append(args, s.name+"="+b.figures(s))
	}
	text, err := b.output(ctx, filepath.Join(b.root, "tools"), "go", args...)
	if err != nil {
		return nil, err
	}
	return rowsOf(text), nil
}

// writePage writes the table of the page for users, and on what it was measured.
func (b *bencher) writePage(ctx context.Context, rows []row) error {
	commit, err := b.output(ctx, b.root, "git", "log", "-1", "--format=%h")
	if err != nil {
		return err
	}
	path := filepath.Join(b.root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	on := fmt.Sprintf("`make bench DOCS=1 BENCH='%s' ROUNDS=%d` on %s, commit %s, with %d processors and a load average of %s at the start:\n\n",
		b.bench, b.rounds, time.Now().Format(time.DateOnly), strings.TrimSpace(commit), runtime.NumCPU(), b.load)
	filled, err := filled(string(text), on+table(slices.DeleteFunc(rows, func(r row) bool { return !onPage(r) }), false))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", page, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}

// output runs a program in a folder and returns what it prints; what it complains about
// is part of the error.
func (b *bencher) output(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s in %s: %w\n%s%s", strings.Join(cmd.Args, " "), folder, err, out.String(), complaint.String())
	}
	return out.String(), nil
}
