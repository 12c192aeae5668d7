package shell

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// kind is what completes a word; the scripts of the shells know these texts.
type kind string

const (
	words   kind = ""
	files   kind = "files"
	folders kind = "folders"
)

// Word is a word that may stand where the cursor is, and what it means.
type Word struct{ Text, Help string }

// Ask returns the words of a kind that only a site knows, such as hosts: it is the tag
// complete of a flag or an argument. Given are the values of the flags typed so far.
type Ask func(what string, given map[string]string) []Word

// Complete returns what the script of a shell is to offer for the last of some words, those
// after the name of the program: in the first line files, folders or nothing, and then a
// word a line, with what it means behind a tab.
func Complete(root *kong.Node, typed []string, ask Ask) string {
	if len(typed) == 0 {
		typed = []string{""}
	}
	typed, isSplit := joined(typed)
	last := len(typed) - 1
	at := walk(root, typed[:last])
	offered, offers := at.offer(typed[last], ask)
	out := string(offered) + "\n"
	for _, w := range offers {
		if !strings.HasPrefix(w.Text, typed[last]) || !safe.MatchString(w.Text) {
			continue
		}
		if isSplit {
			w.Text = w.Text[strings.LastIndexByte(typed[last], '=')+1:]
		}
		out += fmt.Sprintf("%s\t%s\n", w.Text, strings.Join(strings.Fields(w.Help), " "))
	}
	return out
}

// safe matches words that a shell takes as they stand: a script puts them in a command
// line, and names come from a site.
var safe = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// joined joins a flag and its value, and a value such as shop=basel, where bash has split them
// at =, and reports whether that was so with the last word.
func joined(typed []string) (whole []string, isLast bool) {
	for i := 0; i < len(typed); i++ {
		isLast = false
		if n := len(whole) - 1; typed[i] == "=" && n >= 0 && (strings.HasPrefix(whole[n], "--") || n > 0 && strings.HasPrefix(whole[n-1], "--")) {
			whole[n] += "="
			if i+1 < len(typed) {
				i++
				whole[n] += typed[i]
			}
			isLast = true
			continue
		}
		whole = append(whole, typed[i])
	}
	return whole, isLast
}

// place is where the cursor is on a command line.
type place struct {
	command *kong.Node
	// due is the flag whose value comes next.
	due *kong.Flag
	// arguments is how many arguments of the command there are before.
	arguments int
	// onlyArguments tells that the words follow --.
	onlyArguments bool
	given         map[string]string
}

// walk finds the place after some words. Words that the program does not take are passed
// over: the line is not finished yet.
func walk(root *kong.Node, typed []string) place {
	p := place{command: root, given: map[string]string{}}
	for _, word := range typed {
		switch {
		case p.due != nil:
			p.given[p.due.Name], p.due = word, nil
		case p.onlyArguments:
			p.arguments++
		case word == "--":
			p.onlyArguments = true
		case strings.HasPrefix(word, "-") && word != "-":
			f, value, hasValue := p.flag(word)
			if f != nil && hasValue {
				p.given[f.Name] = value
			} else if f != nil && !f.IsBool() {
				p.due = f
			}
		default:
			p.enter(word)
		}
	}
	return p
}

// enter goes on with a command or an argument.
func (p *place) enter(word string) {
	for _, child := range visible(p.command) {
		if child.Name == word && p.arguments == 0 {
			p.command = child
			return
		}
	}
	p.arguments++
}

// flag finds the flag of a word, such as --out or --out=FILE.
func (p *place) flag(word string) (f *kong.Flag, value string, hasValue bool) {
	name, value, hasValue := strings.Cut(word, "=")
	for _, f := range p.flags() {
		for _, way := range spelled(f) {
			if way == name {
				return f, value, hasValue
			}
		}
	}
	return nil, "", false
}

// flags returns the flags that may stand here: a command may stand for one of its own.
func (p *place) flags() []*kong.Flag {
	if d := p.command.DefaultCmd; d != nil {
		return Flags(d)
	}
	return Flags(p.command)
}

// offer returns what may stand here for a word that has been begun.
func (p *place) offer(word string, ask Ask) (kind, []Word) {
	n := p.command
	switch f, _, hasValue := p.flag(word); {
	case p.due != nil:
		return p.value(p.due.Value, word, ask)
	case f != nil && hasValue && !p.onlyArguments:
		name, value, _ := strings.Cut(word, "=")
		offered, offers := p.value(f.Value, value, ask)
		for i := range offers {
			offers[i].Text = name + "=" + offers[i].Text
		}
		return offered, offers
	case strings.HasPrefix(word, "-") && !p.onlyArguments:
		return words, p.flagWords()
	case len(visible(n)) > 0 && p.arguments == 0:
		var all []Word
		for _, child := range visible(n) {
			all = append(all, Word{child.Name, child.Help})
		}
		return words, all
	case p.arguments < len(n.Positional):
		return p.value(n.Positional[p.arguments], word, ask)
	case len(n.Positional) > 0 && n.Positional[len(n.Positional)-1].IsCumulative():
		return p.value(n.Positional[len(n.Positional)-1], word, ask)
	}
	return words, p.flagWords()
}

func (p *place) flagWords() []Word {
	var all []Word
	for _, f := range p.flags() {
		for _, way := range spelled(f) {
			all = append(all, Word{way, f.Help})
		}
	}
	return all
}

// value returns what may stand as a value. Of a list the last word is completed.
func (p *place) value(v *kong.Value, word string, ask Ask) (kind, []Word) {
	may := accepts(v)
	if may.kind != words {
		return may.kind, nil
	}
	var all []Word
	for _, text := range may.words {
		all = append(all, Word{Text: text})
	}
	if what := v.Tag.Get("complete"); what != "" {
		all = ask(what, p.given)
	}
	if before := strings.LastIndexByte(word, ',') + 1; v.IsSlice() && v.Tag.Sep == ',' && before > 0 {
		for i := range all {
			all[i].Text = word[:before] + all[i].Text
		}
	}
	return words, all
}
