package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// What the page has between these marks is written by this program.
const (
	page  = "docs/guides/figures.md"
	begin = "<!-- Written by make bench DOCS=1. -->"
	end   = "<!-- The end of what make bench writes. -->"
)

// floors are the units in which a benchmark reports what the machine itself takes.
var floors = map[string]string{"time/synced-write": "synced write", "time/round-trip": "round trip"}

// row is one figure of a benchmark.
type row struct {
	folder, benchmark, unit string
	// base is empty if only this tree has the figure.
	base, now string
	// change is benchstat's: a percentage, or ~ if the difference may be noise.
	change string
	// floor is what the machine itself takes for what the benchmark waits for.
	floor string
}

var (
	processors = regexp.MustCompile(`-\d+$`)
	module     = regexp.MustCompile(`^github\.com/[^/]+/[^/]+/`)
)

// rowsOf reads benchstat's CSV, which has a table for each package and unit. A figure that
// only the base has is left out.
func rowsOf(text string) []row {
	var all []row
	var folder string
	var sides, units []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimRight(line, "\n"), ",")
		name, isPackage := strings.CutPrefix(cells[0], "pkg: ")
		switch {
		case isPackage:
			folder = module.ReplaceAllString(name, "")
		case len(cells) < 3 || cells[0] == "geomean":
		case cells[0] == "" && (cells[1] == "base" || cells[1] == "now"):
			sides = cells
		case cells[0] == "":
			units = cells
		default:
			if r := rowOf(cells, sides, units); r.now != "" {
				r.folder = folder
				all = append(all, r)
			}
		}
	}
	return withFloors(all)
}

// rowOf reads a line below the heads of a table: the names of the sides, and the units.
func rowOf(cells, sides, units []string) row {
	r := row{benchmark: processors.ReplaceAllString(cells[0], ""), unit: strings.Replace(units[1], "sec/", "time/", 1)}
	figures := map[string]string{}
	for i, c := range cells[1:] {
		switch head := units[i+1]; {
		case c == "" || c == "∞":
		case head == "CI":
			figures[sides[i]] += " ±" + c
		case head == "vs base":
			r.change = c
		default:
			figures[sides[i+1]] = amount(c, r.unit)
		}
	}
	r.base, r.now = figures["base"], figures["now"]
	return r
}

// name is the same for all figures of a benchmark.
func (r row) name() string { return strings.TrimPrefix(r.folder, "agent/") + ": " + r.benchmark }

// withFloors puts the figures of a benchmark together, and the floor beside each. Memory has
// none.
func withFloors(all []row) []row {
	first, floor := map[string]int{}, map[string]string{}
	var rows []row
	for i, r := range all {
		if _, seen := first[r.name()]; !seen {
			first[r.name()] = i
		}
		if what := floors[r.unit]; what != "" {
			floor[r.name()] = what + " " + r.now
		} else {
			rows = append(rows, r)
		}
	}
	for i, r := range rows {
		if !memory(r.unit) {
			rows[i].floor = floor[r.name()]
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return first[a.name()] - first[b.name()] })
	return rows
}

func memory(unit string) bool {
	return unit == "allocs/op" || strings.HasPrefix(unit, "B") || strings.HasPrefix(unit, "KiB") || strings.HasPrefix(unit, "MiB")
}

// scale is a unit in which an amount is shown.
type scale struct {
	size float64
	name string
}

var (
	seconds = []scale{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}
	numbers = []scale{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
)

// amount is a figure for people, with three digits.
func amount(text, unit string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return text
	}
	scales := numbers
	if strings.HasPrefix(unit, "time/") {
		scales = seconds
	}
	shown := scales[len(scales)-1]
	for _, s := range scales {
		if value >= s.size {
			shown = s
			break
		}
	}
	value /= shown.size
	digits := max(0, 2-int(math.Floor(math.Log10(value))))
	text = strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + shown.name
}

// table is Markdown that can be read as it is.
func table(rows []row, compared bool) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	line := func(cells ...string) {
		if !compared {
			cells = slices.Delete(cells, 4, 5) // the change
			cells = slices.Delete(cells, 2, 3) // the base
		}
		_, _ = fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	line("benchmark", "unit", "base", "now", "change", "floor")
	line("---", "---", "---", "---", "---", "---")
	for _, r := range rows {
		line(r.name(), r.unit, r.base, r.now, r.change, r.floor)
	}
	_ = w.Flush()
	return text.String()
}

// onPage says whether the page for users has this figure: those of a whole site and of the
// provider, without what only a developer asks for.
func onPage(r row) bool {
	return (strings.HasPrefix(r.folder, "agent/site") || r.folder == "provider") && r.unit != "B" && r.unit != "B/op" && r.unit != "allocs/op"
}

// filled puts text into a page, between its marks.
func filled(page, text string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page has no %q and %q", begin, end)
	}
	return before + begin + "\n" + text + end + after, nil
}
