// Command mutants tests the tests: it plays deliberate faults, each a function that does the
// wrong thing, and demands that a test fails for each. The faults break what must always
// hold, in the simplest way.
//
//	cd tools && go run ./mutants          plays all faults; takes some minutes
//	cd tools && go run ./mutants -check   checks that each fault still applies and compiles
//	cd tools && go run ./mutants -list
//	cd tools && go run ./mutants -only NAME[,NAME...]
//
// A fault names the function that it changes, and quotes nothing of it; see the type fault.
// When -check says that a function is not declared any more, name the function that does its
// work now and make the same mistake there.
//
// No file of the checkout is changed: go test -overlay applies the fault.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
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
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	list := flag.Bool("list", false, "list the faults and play none")
	check := flag.Bool("check", false, "check that each fault applies and compiles, and play none")
	only := flag.String("only", "", "play the faults of these names, separated by commas")
	flag.Parse()
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	chosen, err := choose(faults, *only)
	if err != nil {
		return err
	}
	source := newSource(root)
	if err := source.check(chosen); err != nil {
		return err
	}
	switch {
	case *check:
		return nil
	case *list:
		for _, f := range chosen {
			fmt.Printf("%-47s %s\n", f.name, f.in)
		}
		return nil
	}
	return source.playAll(ctx, chosen)
}

// choose returns the faults to play: all of them by default.
func choose(all []fault, only string) ([]fault, error) {
	if only == "" {
		return all, nil
	}
	var chosen []fault
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q; -list names them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// playAll plays faults one after the other and prints the result of each.
func (s *source) playAll(ctx context.Context, faults []fault) error {
	var missed []string
	for _, f := range faults {
		for _, by := range f.by {
			begun := time.Now()
			caught, err := s.play(ctx, f, by)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				missed = append(missed, f.name)
				caught = "NOT CAUGHT by " + by.names + ": " + err.Error()
			}
			fmt.Printf("%-47s %5.1fs  %-24s %s\n", f.name, time.Since(begun).Seconds(), by.pkg, caught)
		}
	}
	if len(missed) > 0 {
		return errors.New("not caught: " + strings.Join(slices.Compact(missed), ", "))
	}
	fmt.Printf("all %d faults are caught\n", len(faults))
	return nil
}
