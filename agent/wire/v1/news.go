package v1

import "time"

// News is something that happened, for people and programs to know: an entry of
// /v1/state/tenants/{tenant}/os-upgrade/news, the event "news" of the event stream, and the
// body of a webhook.
type News struct {
	// ID is the same each time the news is delivered, so a receiver can drop duplicates.
	ID string `json:"id"`
	// Type is one of NewsTypes.
	Type string `json:"type"`
	// Timestamp is when it happened.
	Timestamp time.Time `json:"timestamp"`
	Data      NewsData  `json:"data"`
	// Number is its place among the news of the tenant that are kept.
	Number uint64 `json:"-"`
}

// NewsData says what happened.
type NewsData struct {
	Tenant string `json:"tenant"`
	// Text says all of it in a sentence, for people.
	Text string `json:"text"`
	// Environment is the environment of the run or of the window; absent for the default one.
	Environment string `json:"environment,omitempty"`
	// Run is the run concerned; absent for a window and for a calendar.
	Run uint64 `json:"run,omitempty"`
	// Release is the name of the release that the run installs, RollbackOf the newest run that it rolls
	// back; absent for a run without one, and for one that rolls back none.
	Release    string `json:"release,omitempty"`
	RollbackOf uint64 `json:"rollback-of,omitempty"`
	// Trigger, RequestedBy and RequestReason are of a run that was opened; RequestedBy is also who skipped a
	// window.
	Trigger       string `json:"trigger,omitempty"`
	RequestedBy   string `json:"requested-by,omitempty"`
	RequestReason string `json:"request-reason,omitempty"`
	// Hosts is the number of hosts in the run or the stage; Upgraded and Failed are how
	// many of them were upgraded or failed.
	Hosts    int `json:"hosts,omitempty"`
	Upgraded int `json:"upgraded,omitempty"`
	// UpToDate is how many of the upgraded hosts of a run that has ended had nothing to change.
	UpToDate int `json:"up-to-date,omitempty"`
	Failed   int `json:"failed,omitempty"`
	// Stage is the stage that is done or waits, or the stage of the host.
	Stage string `json:"stage,omitempty"`
	// Host is the host that failed, is overdue or waits for approval, Class the class of the failure if the host reported
	// one, and Error its message.
	Host  string `json:"host,omitempty"`
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// WaitingFor is what the run waits for.
	WaitingFor *WaitingFor `json:"waiting-for,omitempty"`
	// Command is what a person can type so that the run continues, to see what a host that is overdue
	// does, to let in a host, or to try a calendar again; NAME is a placeholder.
	Command string `json:"command,omitempty"`
	// Result and Reason are of a run that has ended; Reason is also why a window was missed or skipped.
	Result string `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Calendar is the calendar that cannot be fetched; Error says why.
	Calendar string `json:"calendar,omitempty"`
	// Window and WindowEnd are the start and the end of a window that was missed or skipped.
	Window    *time.Time `json:"window,omitempty"`
	WindowEnd *time.Time `json:"window-end,omitempty"`
}

// The types of news.
const (
	NewsRunOpened    = "run.opened"
	NewsStageDone    = "stage.done"
	NewsHostFailed   = "host.failed"
	NewsRunBlocked   = "run.blocked"
	NewsRunOverdue   = "run.overdue"
	NewsRunWaiting   = "run.waiting"
	NewsRunDiffering = "run.differing"
	NewsRunFinished  = "run.finished"
	NewsWindowMissed = "window.missed"
	// A window has closed without a run, because all hosts have the release of their environment.
	NewsWindowUpToDate = "window.up-to-date"
	// Somebody has skipped a window.
	NewsWindowSkipped = "window.skipped"
	// A calendar with a URL could not be fetched several times in a row, or can be again.
	NewsCalendarFailing   = "calendar.failing"
	NewsCalendarRecovered = "calendar.recovered"
	// A calendar with a URL was fetched, and has no events any more.
	NewsCalendarEmptied = "calendar.emptied"
	// A host has begun to wait for approval.
	NewsHostWaiting = "host.waiting"
	// NewsTest is told to one webhook alone, when somebody asks for it.
	NewsTest = "test"
)

// NewsTypes lists the types of news, but for the test.
func NewsTypes() []string {
	return []string{
		NewsRunOpened, NewsStageDone, NewsHostFailed, NewsRunBlocked, NewsRunOverdue, NewsRunWaiting, NewsRunDiffering, NewsRunFinished, NewsWindowMissed, NewsWindowUpToDate, NewsWindowSkipped,
		NewsCalendarFailing, NewsCalendarRecovered, NewsCalendarEmptied, NewsHostWaiting,
	}
}

// MaxNews is how many news of a tenant are kept; the oldest go first.
const MaxNews = 1000
