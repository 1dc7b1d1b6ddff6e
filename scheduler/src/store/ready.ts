/** Of each task's priorities, 9 first. */
export const prioritiesSql = "array[9,8,7,6,5,4,3,2,1,0]::smallint[]";

/**
 * The earliest due time of what the groups' workers can claim: one probe of the index per group and priority, however
 * many runs wait. @param groups of a FROM list @param id the group's number in it @param but a condition on runs
 */
export const earliestReadySql = (schema: string, groups: string, id: string, but = "true"): string => `
    select min(r.due_ms) as next from ${groups} cross join unnest(${prioritiesSql}) as p (priority)
    cross join lateral (
      select due_ms from ${schema}.run where state = 2 and group_id = ${id} and priority = p.priority and ${but}
      order by due_ms limit 1) r`;
