package intent

import "strings"

// around is how many unchanged lines are shown before and after a change.
const around = 3

// maxCells bounds the table of a comparison. Beyond it the differing part is
// shown as removed and added as a whole.
const maxCells = 4_000_000

func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diff returns how one text becomes another: lines that begin with "- " or "+ ",
// and with two blanks those around them. "..." stands for lines left out.
func diff(before, after []string) string {
	all := edits(before, after)
	var b strings.Builder
	left := false
	for i, line := range all {
		switch {
		case near(all, i):
			b.WriteString(line + "\n")
			left = false
		case !left:
			b.WriteString("  ...\n")
			left = true
		}
	}
	return b.String()
}

// near reports whether a line is changed or close to one that is.
func near(all []string, i int) bool {
	for _, line := range all[max(0, i-around):min(len(all), i+around+1)] {
		if !strings.HasPrefix(line, " ") {
			return true
		}
	}
	return false
}

// edits returns all lines of both texts, each with its mark.
func edits(before, after []string) []string {
	var all []string
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	all = mark(all, "  ", before[:head])
	all = append(all, middle(before[head:len(before)-tail], after[head:len(after)-tail])...)
	return mark(all, "  ", before[len(before)-tail:])
}

func mark(all []string, with string, lines []string) []string {
	for _, line := range lines {
		all = append(all, with+line)
	}
	return all
}

// middle compares by the longest common subsequence: common[i][j] is its length
// for what begins at before[i] and after[j].
func middle(before, after []string) (all []string) {
	if len(before)*len(after) > maxCells {
		return mark(mark(nil, "- ", before), "+ ", after)
	}
	common := make([][]int32, len(before)+1)
	for i := range common {
		common[i] = make([]int32, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			all = append(all, "  "+before[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			all = append(all, "- "+before[i])
			i++
		default:
			all = append(all, "+ "+after[j])
			j++
		}
	}
	return mark(mark(all, "- ", before[i:]), "+ ", after[j:])
}
