// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// defaultMatches and maxMatches bound the matches of a call, and maxContext the lines around each.
	defaultMatches, maxMatches, maxContext = 100, 1000, 10
	// maxPattern bounds the characters of a pattern; the agent takes as many bytes.
	maxPattern = 1024
	// maxText bounds the characters of a line.
	maxText = 500
)

type searchFiles struct{ *common }

type match struct {
	Line   int64    `json:"line" doc:"Number of the line, from 1 on."`
	Text   string   `json:"text" doc:"The line, its beginning if it is long."`
	Before []string `json:"before,omitempty" doc:"The lines before it."`
	After  []string `json:"after,omitempty" doc:"The lines after it."`
}

type foundIn struct {
	Path    string  `json:"path" doc:"A file, relative to the workspace's directory."`
	Matches []match `json:"matches,omitempty" doc:"Its lines that match; none if files are found by name."`
}

type searchFilesResult struct {
	Files     []foundIn `json:"files" doc:"The files, sorted by path."`
	Truncated bool      `json:"truncated,omitempty" doc:"Whether there is more than this."`
	Skipped   int       `json:"skipped,omitempty" doc:"How many files were not searched: binary, too large or unreadable."`
	Note      string    `json:"note,omitempty" doc:"What to do if there is more."`
}

func (t searchFiles) Definition() tools.Definition {
	return tools.Definition{
		Name: "search_files",
		Description: "Finds files of the workspace by name, and lines in them by a regular expression. What ignore files " +
			"name, and names that begin with a dot, are left out unless hidden is true. Give pattern, glob, or both.",
		InputSchema: arguments.Object(map[string]any{
			"pattern": arguments.Text(0, maxPattern,
				"Regular expression (RE2) that a line must match. Without it, files are found by "+
					"name."),
			"glob": arguments.Text(0, maxPattern, "Pattern that paths below path must match, such as **/*.go. Default: all."),
			"path": arguments.Text(0, maxPath,
				"Directory or file to search, relative to the workspace's directory, which is the "+
					"default, or absolute."),
			"ignore_case": arguments.Boolean("Whether pattern ignores the case of letters."),
			"context":     arguments.Integer(0, maxContext, 0, "How many lines before and after a match to return."),
			"hidden":      arguments.Boolean("Whether to search also what is otherwise left out."),
			"limit":       arguments.Integer(1, maxMatches, defaultMatches, "How many matches to return at most."),
		}),
		Traits: t.readTraits(),
		Reference: tools.Reference{
			Offered: offered, Result: searchFilesResult{},
			Errors: []string{
				"The pattern or the glob cannot be understood, or both are missing.",
				"There is no such directory or file, or it leads out of the workspace's directory.",
			},
			Limits: []string{fmt.Sprintf("%d matches, %d characters of a line, %d lines around a match.", maxMatches, maxText,
				maxContext)},
		},
	}
}

// searchArguments has the fields of protocol.SearchRequest.
type searchArguments struct {
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Pattern    string `json:"pattern"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	Hidden     bool   `json:"hidden"`
	Limit      int    `json:"limit"`
}

func (t searchFiles) Run(ctx context.Context, call tools.Call) (string, error) {
	var args searchArguments
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	if args.Pattern == "" && args.Glob == "" {
		return "", errors.New("the call was not made: pattern and glob are both missing; give one of them, for example " +
			"glob **/*.go")
	}
	got, err := workspace.Search(ctx, protocol.SearchRequest(args))
	if err != nil {
		return "", Problem(ctx, err)
	}
	return tools.Fit(call.Chat, args.Limit, func(most int) any { return groupByFile(got, most) })
}

// groupByFile is the result with at most so many matches.
func groupByFile(got *protocol.SearchResponse, most int) searchFilesResult {
	result := searchFilesResult{Files: []foundIn{}, Truncated: got.Truncated, Skipped: max(0, got.Skipped)}
	matches := got.Matches
	if len(matches) > most {
		matches, result.Truncated = matches[:most], true
	}
	for i := range matches {
		m, last := &matches[i], len(result.Files)-1
		if last < 0 || result.Files[last].Path != m.Path {
			result.Files = append(result.Files, foundIn{Path: m.Path})
			last++
		}
		if m.Line > 0 {
			result.Files[last].Matches = append(result.Files[last].Matches, match{
				Line: m.Line, Text: cutLine(m.Text), Before: cutLines(m.Before), After: cutLines(m.After),
			})
		}
	}
	switch {
	case len(matches) == 0 && len(got.Matches) > 0:
		result.Note = "There are matches that are too long to be shown: ask for less context."
	case result.Truncated:
		result.Note = fmt.Sprintf("These are the first %d matches: a narrower pattern, glob or path finds the others.",
			len(matches))
	case len(matches) == 0:
		result.Note = "Nothing matches."
	}
	return result
}

func cutLine(text string) string { return clip.Ellipsis(strings.TrimRight(text, "\r\n"), maxText) }

// cutLines cuts the lines around a match.
func cutLines(lines []string) (shown []string) {
	for _, text := range lines[:min(len(lines), maxContext)] {
		shown = append(shown, cutLine(text))
	}
	return shown
}
