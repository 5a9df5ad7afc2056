/*
 * core/clients/backup.h - ledger.backup.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_BACKUP_H
#define SLUICE_BROKER_CORE_CLIENTS_BACKUP_H

struct call;
struct core;

void handle_ledger_backup(struct core *core, const struct call *call);

#endif
