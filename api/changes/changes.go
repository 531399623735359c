// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes has the types of what is changed in a workspace.
package changes

import "time"

// Changes are what is changed in a workspace.
type Changes struct {
	// Since is when the workspace got its chat.
	Since        time.Time    `json:"since" doc:"When the workspace got its chat."`
	Repositories []Repository `json:"repositories,omitempty" doc:"The Git repositories in the workspace."`
	// Files are those outside of repositories.
	Files   []File `json:"files,omitempty" doc:"Changed files outside of repositories."`
	Omitted int    `json:"omitted,omitempty" doc:"How many more files outside of repositories are changed."`
	// Notes are for people.
	Notes []string `json:"notes,omitempty" doc:"Sentences about what could not be examined."`
}

// Repository is a Git repository in a workspace.
type Repository struct {
	Path     string `json:"path" doc:"The directory, relative to that of the workspace; . is the same one."`
	Branch   string `json:"branch,omitempty" doc:"The current branch; absent if HEAD is detached."`
	Upstream string `json:"upstream,omitempty" doc:"The upstream of the branch."`
	Base     string `json:"base,omitempty" doc:"The commit or tree that the files are compared with."`
	// Commits are those that no remote has, the newest first.
	Commits     []Commit `json:"commits,omitempty" doc:"Commits that no remote has; without remotes, those since then."`
	MoreCommits bool     `json:"moreCommits,omitempty" doc:"Whether there are more such commits."`
	Files       []File   `json:"files,omitempty" doc:"Files that differ from the base, relative to the repository."`
	Omitted     int      `json:"omitted,omitempty" doc:"How many more files differ."`
	Error       string   `json:"error,omitempty" doc:"Why the repository could not be examined, or a part of it."`
}

// Commit is a commit of Git.
type Commit struct {
	ID      string `json:"id" doc:"The abbreviated id."`
	Subject string `json:"subject" doc:"The first line of the message."`
}

// Status is how a file is changed.
type Status string

// The statuses.
const (
	Added    Status = "added"
	Modified Status = "modified"
	Deleted  Status = "deleted"
	Renamed  Status = "renamed"
)

// File is a changed file.
type File struct {
	Path    string `json:"path" doc:"The path; bytes that are not UTF-8 are replaced."`
	OldPath string `json:"oldPath,omitempty" doc:"The path before a rename."`
	Status  Status `json:"status" enum:"added,modified,deleted,renamed" doc:"How the file is changed."`
	Binary  bool   `json:"binary,omitempty" doc:"Whether the content is binary, and so has no diff."`
	Added   int    `json:"added,omitempty" doc:"How many lines are added."`
	Removed int    `json:"removed,omitempty" doc:"How many lines are removed."`
	Diff    string `json:"diff,omitempty" doc:"The unified diff with the headers of Git."`
	// Note is why the diff is missing or cut. Then it is not in a patch.
	Note string `json:"note,omitempty" doc:"Why the diff is missing or cut."`
}
