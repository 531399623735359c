// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// FileInfo describes a file that was written.
type FileInfo struct {
	// Path relative to the workspace's directory.
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Created reports whether there was no file before.
	Created bool `json:"created,omitempty"`
}

// ReadRequest asks for lines of a text file.
type ReadRequest struct {
	Path string `json:"path"`
	// Offset is the first line, from 1 on; default: 1.
	Offset int64 `json:"offset,omitempty"`
	// Limit is the most lines; default: 2000.
	Limit int64 `json:"limit,omitempty"`
	// MaxBytes bounds the content; default: 64 KiB, at least 256 bytes, at most 1 MiB.
	MaxBytes int64 `json:"maxBytes,omitempty"`
}

// ReadResponse are lines of a text file.
type ReadResponse struct {
	// Content has whole lines exactly as in the file; a line of more than 4 KiB is cut, with a marker.
	Content   string `json:"content"`
	FirstLine int64  `json:"firstLine"`
	// Lines is the number of lines in Content.
	Lines int64 `json:"lines"`
	// TotalLines of the file; -1: it is too large to count them.
	TotalLines int64 `json:"totalLines"`
	Size       int64 `json:"size"`
}

// EditRequest makes all edits or none.
type EditRequest struct {
	// Edits apply in their order, 500 at most.
	Edits []Edit `json:"edits"`
}

// Edit replaces a text in a file. If all lines of the file end as on Windows, line feeds of both texts match these
// endings, unless OldText has a carriage return.
type Edit struct {
	Path string `json:"path"`
	// OldText must occur exactly once, unless ReplaceAll. Empty: the file must not exist or be empty, and becomes NewText.
	OldText    string `json:"oldText"`
	NewText    string `json:"newText"`
	ReplaceAll bool   `json:"replaceAll,omitempty"`
}

// EditResponse lists the changes.
type EditResponse struct {
	Files []EditedFile `json:"files"`
}

// EditedFile is the change of one file.
type EditedFile struct {
	Path string `json:"path"`
	// Replaced is the number of replaced occurrences.
	Replaced int `json:"replaced"`
	// Diff in the unified format, cut if it has more than 16 KiB.
	Diff string `json:"diff"`
}

// SearchRequest looks for files by name, and in them by content.
type SearchRequest struct {
	// Path of the directory, or of the one file, to search; default: the workspace's directory.
	Path string `json:"path,omitempty"`
	// Glob that the paths, relative to Path, must match; ** matches any number of directories, {a,b} either text. Default:
	// all. Ignore files above an ignored Path do not count below it.
	Glob string `json:"glob,omitempty"`
	// Pattern is a regular expression (RE2) that a line must match; empty: names alone.
	Pattern string `json:"pattern,omitempty"`
	// IgnoreCase of letters in Pattern.
	IgnoreCase bool `json:"ignoreCase,omitempty"`
	// Context is how many lines before and after a match are shown, at most 10.
	Context int `json:"context,omitempty"`
	// Hidden includes ignored files, and names that begin with a dot.
	Hidden bool `json:"hidden,omitempty"`
	// Limit is the most matches; default: 100, at most 1000.
	Limit int `json:"limit,omitempty"`
}

// SearchResponse are the matches, sorted by path and line.
type SearchResponse struct {
	Matches []Match `json:"matches"`
	// Truncated reports whether there are or may be more: a search ends after 10 s.
	Truncated bool `json:"truncated,omitempty"`
	// Skipped is how many files were not searched because they are binary, too large or unreadable.
	Skipped int `json:"skipped,omitempty"`
}

// Match is a file, or a line of one.
type Match struct {
	Path string `json:"path"`
	// Line number from 1 on; 0: a match of the name.
	Line int64 `json:"line,omitempty"`
	// Text of the line, cut if it is long.
	Text string `json:"text,omitempty"`
	// Before and After are the lines around it.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}
