# Completion of bash for sluice and its programs: what they themselves say they take (--help-completion), so that it is
# always of the programs that are installed.

# $1: a program and its command, in words. Prints a line for each thing it takes, "NAME TAB KIND TAB WORDS TAB MEANING".
_sluice_takes() {
    command "$@" --help-completion 2>/dev/null
}

_sluice() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} name kind words
    local asked=("${COMP_WORDS[0]}") first=1 offered=()
    if [ "${COMP_WORDS[0]##*/}" = sluice ] && [ "$COMP_CWORD" -gt 1 ]; then
        asked+=("${COMP_WORDS[1]}")
        first=2
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r name kind words; do
        words=${words%%$'\t'*}
        case $kind in
        command | choice) [ "$COMP_CWORD" -eq $first ] && offered+=("$name") ;;
        *) [[ $current == -* ]] && offered+=("$name") ;;
        esac
        [ "$name" = "$before" ] || continue
        case $kind in
        word) mapfile -t COMPREPLY < <(compgen -W "${words//|/ }" -- "$current") ;;
        directory) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        text) ;;
        *) continue ;;
        esac
        return
    done < <(_sluice_takes "${asked[@]}" | sed 's/\t\t/\t \t/')
    if [ ${#offered[@]} -gt 0 ]; then
        mapfile -t COMPREPLY < <(compgen -W "${offered[*]}" -- "$current")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -F _sluice sluice sluice-broker sluice-worker sluice-image sluice-verify sluice-grade sluice-simulate sluice-gateway
